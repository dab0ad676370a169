"""The team's store. Takes: the URL of a PostgreSQL database. Gives: one memory for many machines, tenant by tenant.

Never: shows a tenant what is another's, also not by a query that forgot to ask.
"""

from mnemarch.stores.postgres.store import PostgresStore
from mnemarch.stores.postgres.views import tenants_of

__all__ = ["PostgresStore", "tenants_of"]
