"""Published. Takes: claims and acts on units. Gives: units, merged or disputed where they meet. Never: searches."""
