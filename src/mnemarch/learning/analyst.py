"""The analyst: a language model behind an API, asked for JSON of a schema. The vendors' SDKs send, time out and retry.

This module never reads the environment. It is given the address and the key, and sends only headers from a list (R4).
"""

from __future__ import annotations

import time
from math import inf, isfinite

from mnemarch.errors import AnalystFailed
from mnemarch.learning.classify import Bucket, Classified, MemoryEvent
from mnemarch.model.json_text import from_json, to_json
from mnemarch.model.outcome import Analysis
from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import pattern
from mnemarch.text.prompt import entry, estimated_tokens, fenced
from mnemarch.text.tokens import query_tokens, tokens
from mnemarch.text.words import entries, in_a_line
from mnemarch.units.analysis import CHOICE, PROSE, LoggedStep, analysed, runnable_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from mnemarch.config import AnalystRules

    Turns = list[dict[str, str]]
else:
    Protocol = object  # `typing` is slow to import.

_BODY_BYTES_MAX = 4 * 1024 * 1024
_DETAIL_CHARS_MAX = 300
_WAIT_S_MAX = 60
_MILLION = 1_000_000
# Statuses after which a later attempt may succeed.
_PASSING = frozenset({408, 409, 425, 429})
# The headers that an SDK may send beside the key. Others may come from the environment, and could leak a key.
_HEADERS = frozenset({"host", "content-type", "content-length", "accept", "accept-encoding", "connection"})
# `x-stainless-raw-response` tells the SDK that the caller reads the answer itself.
_HEADERS |= {"user-agent", "anthropic-version", "transfer-encoding", "x-stainless-raw-response"}
_REPAIR = "That answer can't be used: {problem}. Answer again with one JSON object of the schema, and nothing else."
_HINTS = {
    401: "Check the key in the environment, and that your own configuration names this address.",
    403: "Check what the key may do.",
    404: "Check analyst.base_url (it usually ends in /v1) and analyst.model.",
}
_TYPES: dict[str, Any] = {
    "string": str,
    "number": int | float,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
_INSTRUCTION, _SORTING = ("\n".join(entries("analyst", each)) for each in ("task", "bucket"))
_VERDICTS = {True: "Verification passed.", False: "Verification failed, so it is false."}
_TEXT = {"type": "string"}
_STEP = {"type": "integer"}


class Usage(Frozen):
    """The tokens sent to and received from a model, and their cost at the configured prices."""

    input_tokens: int = 0
    output_tokens: int = 0
    money: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            money=self.money + other.money,
        )


class Reply(Frozen):
    """The answer that fits the schema, or the error. Both have a usage, since a failure may cost too."""

    answer: Mapping[str, Any] | None
    usage: Usage
    error: AnalystFailed | None = None


class Model(Protocol):
    """Answers with an object of the schema, or raises `AnalystFailed`. `material` is data, never instructions."""

    def answer(self, instruction: str, material: str, schema: Mapping[str, Any]) -> Mapping[str, Any]: ...


class Api(Frozen):
    """One vendor's API: the class of its SDK, its address, how the key is sent, how to ask and how to read.

    `asked` calls the SDK. `said` returns the text of a body, the reason for its end, and the tokens in and out.
    """

    client: str
    address: str
    key_variable: str
    key_header: str
    key_prefix: str
    asked: Callable[[Any, AnalystRules, str, Turns, Mapping[str, Any]], Any]
    said: Callable[[Any], tuple[Any, Any, Any, Any]]


def _ask_openai(client: Any, rules: AnalystRules, instruction: str, turns: Turns, schema: Mapping[str, Any]) -> Any:
    # Compatible servers know the older name. OpenAI's newer models accept only the newer one.
    limit = "max_tokens" if rules.base_url else "max_completion_tokens"
    return client.chat.completions.with_raw_response.create(
        model=rules.model,
        messages=[{"role": "system", "content": instruction}, *turns],
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}},
        **{limit: rules.output_tokens_max},
    )


def _said_openai(body: Any) -> tuple[Any, Any, Any, Any]:
    choice, usage = body["choices"][0], body.get("usage") or {}
    ended = "refusal" if choice["message"].get("refusal") else choice.get("finish_reason")
    return choice["message"].get("content"), ended, usage.get("prompt_tokens"), usage.get("completion_tokens")


def _ask_anthropic(client: Any, rules: AnalystRules, instruction: str, turns: Turns, schema: Mapping[str, Any]) -> Any:
    return client.messages.with_raw_response.create(
        model=rules.model,
        max_tokens=rules.output_tokens_max,
        system=instruction,
        messages=turns,
        output_config={"format": {"type": "json_schema", "schema": schema}},
    )


def _said_anthropic(body: Any) -> tuple[Any, Any, Any, Any]:
    text, usage = "".join(block.get("text", "") for block in body["content"]), body.get("usage") or {}
    return text, body.get("stop_reason"), usage.get("input_tokens"), usage.get("output_tokens")


APIS = {
    "openai": Api(
        client="OpenAI",
        address="https://api.openai.com/v1",
        key_variable="OPENAI_API_KEY",
        key_header="authorization",
        key_prefix="Bearer ",
        asked=_ask_openai,
        said=_said_openai,
    ),
    "anthropic": Api(
        client="Anthropic",
        address="https://api.anthropic.com",
        key_variable="ANTHROPIC_API_KEY",
        key_header="x-api-key",
        key_prefix="",
        asked=_ask_anthropic,
        said=_said_anthropic,
    ),
}
# Reasons for the end of an answer after which asking again in the same way would not help.
_ENDS = {
    "length": "it was cut off: raise analyst.output_tokens_max",
    "max_tokens": "it was cut off: raise analyst.output_tokens_max",
    "model_context_window_exceeded": "the log is too long for the model: lower analyst.material_tokens_max",
    "content_filter": "the model refused",
    "refusal": "the model refused",
}


class ApiModel:
    """The model that the settings name."""

    def __init__(self, rules: AnalystRules, api_key: str | None) -> None:
        self.rules = rules
        self._api = APIS[rules.api]
        self._key = api_key
        self._address = rules.base_url or self._api.address

    @property
    def name(self) -> str:
        return self.rules.model

    def ask(
        self,
        instruction: str,
        material: str,
        schema: Mapping[str, Any],
        *,
        tokens_left: float = inf,
        money_left: float = inf,
        retries_max: int | None = None,
    ) -> Reply:
        """Ask, and ask once more with the problem if the answer does not fit. Requests that may exceed the
        budget are not sent."""
        turns = [{"role": "user", "content": material}]
        spent: list[Usage] = []
        problem = ""
        try:
            for _ in range(2):
                likely = self._usage(_estimate(instruction, turns, schema), self.rules.output_tokens_max)
                used = sum(spent, Usage())
                if used.tokens + likely.tokens > tokens_left or used.money + likely.money > money_left:
                    raise AnalystFailed("The budget of the analyst is spent.", hint=_BUDGET_HINT, is_away=True)
                text = self._asked(instruction, turns, schema, spent, retries_max)
                answer, problem = _read(text, schema)
                if not problem:
                    return Reply(answer=answer, usage=sum(spent, Usage()))
                repair = _REPAIR.format(problem=problem)
                turns += [{"role": "assistant", "content": text}, {"role": "user", "content": repair}]
            error = AnalystFailed(f"{self.name} gave no usable answer, asked twice: {problem}.", hint=_UNUSABLE_HINT)
        except AnalystFailed as failure:
            error = failure
        return Reply(answer=None, usage=sum(spent, Usage()), error=error)

    def _asked(
        self, instruction: str, turns: Turns, schema: Mapping[str, Any], spent: list[Usage], retries_max: int | None
    ) -> str:
        """The text of one answer. Its usage is added to `spent`."""
        rules, sdk = self.rules, _sdk(self.rules.api)
        guess = _estimate(instruction, turns, schema)
        try:
            with self._client(sdk, rules.retries_max if retries_max is None else retries_max) as client:
                body = self._api.asked(client, rules, instruction, turns, schema).http_response.content
        except sdk.APITimeoutError:
            spent.append(self._usage(guess, 0))  # It may have been charged.
            raise self._away(f"did not answer within {rules.timeout_s:g} s") from None
        except sdk.APIStatusError as error:
            raise self._refused(error.status_code, str(error.message)) from None
        except sdk.APIConnectionError as error:
            raise self._away(f"can't be reached: {error.__cause__ or error}") from None
        try:
            text, ended, tokens_in, tokens_out = self._api.said(from_json(body.decode()))
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            spent.append(self._usage(guess, 0))
            raise self._away("sent something that is not an answer of its API") from None
        counted = type(tokens_in) is int and type(tokens_out) is int and tokens_in >= 0 and tokens_out >= 0
        spent.append(self._usage(*((tokens_in, tokens_out) if counted else (guess, estimated_tokens(str(text))))))
        reason = _ENDS.get(str(ended), "")
        if reason or not isinstance(text, str) or not text.strip():
            raise AnalystFailed(f"{self.name} gave no answer: {reason or 'it is empty'}.", hint=_UNUSABLE_HINT)
        return text

    def _client(self, sdk: Any, retries_max: int) -> Any:
        """A client that follows no redirect, sends no header from the environment, and bounds the answer."""
        hooks = {"request": [self._strip], "response": [self._bound]}
        http = sdk.DefaultHttpxClient(follow_redirects=False, event_hooks=hooks)
        return getattr(sdk, self._api.client)(
            api_key=self._key or "none",
            base_url=self._address,
            timeout=self.rules.timeout_s,
            max_retries=retries_max,
            http_client=http,
        )

    def _strip(self, request: Any) -> None:
        for name in list(request.headers):
            if name.lower() not in _HEADERS:
                del request.headers[name]
        request.headers["user-agent"] = "mnemarch"
        if self._key:
            request.headers[self._api.key_header] = self._api.key_prefix + self._key

    def _bound(self, response: Any) -> None:
        """Limit the time and the size of the whole answer, since each byte restarts the socket's timeout."""
        from httpx2 import ReadTimeout, SyncByteStream  # both SDKs bring it

        wait = response.headers.get("retry-after", "0")
        if not wait.isdecimal() or int(wait) > _WAIT_S_MAX:
            response.headers["x-should-retry"] = "false"  # The SDK would sleep for as long as the server says.
        stream, give_up_at = response.stream, time.monotonic() + self.rules.timeout_s

        class Bounded(SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                size = 0
                for chunk in stream:
                    size += len(chunk)
                    if size > _BODY_BYTES_MAX or time.monotonic() > give_up_at:
                        raise ReadTimeout("the answer took too long, or is too large")
                    yield chunk

            def close(self) -> None:
                stream.close()

        response.stream = Bounded()

    def _usage(self, tokens_in: int, tokens_out: int) -> Usage:
        prices = self.rules.price_input, self.rules.price_output
        money = (tokens_in * prices[0] + tokens_out * prices[1]) / _MILLION
        return Usage(input_tokens=tokens_in, output_tokens=tokens_out, money=money)

    def _away(self, trouble: str) -> AnalystFailed:
        said = in_a_line(trouble.replace(self._key, "***") if self._key else trouble, _DETAIL_CHARS_MAX)
        return AnalystFailed(f"{self._address} {said}.", hint=_LATER_HINT, is_away=True)

    def _refused(self, status: int, detail: str) -> AnalystFailed:
        failure = self._away(f"refused with status {status}: {detail}")
        if status in _PASSING or status >= 500:
            return failure
        hint = _HINTS.get(status, "Check analyst.model, and that it can answer with a JSON schema.")
        return AnalystFailed(failure.message, hint=hint, is_away=True)


_BUDGET_HINT = (
    "Rules analyse tasks until then. Wait until tomorrow, or raise analyst.tokens_per_day_max or money_per_day_max."
)
_LATER_HINT = "The task is kept as the rules analysed it; ask again later with: mnemarch cognify"
_UNUSABLE_HINT = "The task is kept as the rules analysed it. Check that the model can answer with a JSON schema."


def _sdk(api: str) -> Any:
    from importlib import import_module

    try:
        return import_module(api)
    except ImportError:
        raise AnalystFailed(
            f'analyst.api = "{api}" needs the package {api}, which is not installed.',
            hint=f"Install it with: pip install 'mnemarch[{api}]'",
            is_away=True,
        ) from None


def _estimate(instruction: str, turns: Turns, schema: Mapping[str, Any]) -> int:
    return estimated_tokens("\n".join([instruction, to_json(schema), *(turn["content"] for turn in turns)]))


def _read(text: str, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The object in an answer, and the problem with it; empty if there is none."""
    plain = text.strip().removeprefix("```json").strip("`").strip()
    try:
        content = from_json(plain)
    except (ValueError, RecursionError) as error:
        return {}, f"it is not JSON ({in_a_line(str(error), _DETAIL_CHARS_MAX)})"
    problem = misfit(content, schema, "the answer")
    return ({}, problem) if problem else (content, "")


def misfit(content: Any, schema: Mapping[str, Any], what: str) -> str:
    """How content breaks a JSON schema; empty if it fits. Only the forms used here are supported."""
    kind = schema["type"]
    if not isinstance(content, _TYPES[kind]) or (isinstance(content, bool) and kind != "boolean"):
        return f"{what} must be {'an' if kind[0] in 'aio' else 'a'} {kind}"
    if isinstance(content, float) and not isfinite(content):
        return f"{what} must be a number"
    if "enum" in schema and content not in schema["enum"]:
        return f"{what} must be one of {', '.join(map(str, schema['enum']))}"
    if kind == "array":
        problems = (misfit(item, schema["items"], f"{what}[{at}]") for at, item in enumerate(content))
        return next(filter(None, problems), "")
    if kind != "object":
        return ""
    known = schema["properties"]
    if missing := [name for name in schema["required"] if name not in content]:
        return f"{what} needs {missing[0]}"
    if unknown := [name for name in content if name not in known]:
        return f"{what} has no field {in_a_line(str(unknown[0]), _DETAIL_CHARS_MAX)}"
    return next(filter(None, (misfit(content[name], known[name], f"{what}.{name}") for name in content)), "")


# What the model is asked: to analyse a task, or to classify a text (G8, M2). Answers are checked against the log.
#
# The log is sent as data between marks that it can't forge. Only parts of the answer that the log supports are kept:
# decisions that a step states, commands that were run, names that were logged. The model can't turn a failed
# verification into a success.


def _object(**properties: Any) -> dict[str, Any]:
    """A schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SCHEMA = _object(
    success={"type": "boolean"},
    critique=_TEXT,
    score={"type": "number"},
    key_decisions={"type": "array", "items": _object(step=_STEP, choice=_TEXT, reason=_TEXT)},
    is_repeatable={"type": "boolean"},
    skill_name=_TEXT,
    skill_steps={"type": "array", "items": _STEP},
)
# The kinds of entries in which an agent states its own choices. Tool output, files and requests are not its choices.
_AGENTS_OWN = CHOICE | PROSE | {"hypothesis", "approach", "edit", "patch"}
_SHOWN_DATA = ("command", "exit", "path", "rationale", "approach", "code", "patch", "before", "after")
_STEP_CHARS_MAX = 1_500
_CRITIQUE_CHARS_MAX = 1_200
_CHOICE_CHARS_MAX = 300
_DECISIONS_MAX = 5
_NAME_CHARS_MAX = 60
_WHY_CHARS_MAX = 200
_FAILED_SCORE_MAX = 0.5
# The share of the words of a choice, or of its reason, that must be in the log.
_SHARE_MIN = 0.6
# Names that can be looked up in the log: paths, tests, commits, and text between backticks.
_NAMES = (
    r"`([^`\n]+)`|([\w.-]+(?:/[\w.-]+)+|\w+\.(?:py|js|ts|tsx|go|rs|java|kt|rb|c|h|cpp|toml|json|ya?ml|md|sql|sh)\b)"
)
_NAMES += r"|(\btest_\w+|\w+::[\w:]+)|\b((?=[0-9a-f]*\d)[0-9a-f]{7,40})\b"
_SENTENCE_END = r"(?<=[.!?。])\s+"


def analysis_by_model(
    model: Model, name: str, steps: Sequence[LoggedStep], *, passed: bool, tests: Sequence[str], tokens_max: int
) -> Analysis:
    """The model's analysis, limited to what the log supports. The rules fill in the rest."""
    shown = _shown(steps, tests, passed, tokens_max)
    material = fenced(list(shown.values()))
    answer = model.answer(_INSTRUCTION.format(verdict=_VERDICTS[passed]), material, _SCHEMA)
    by_rules = analysed(steps, passed, 1)
    done = [number for number in answer["skill_steps"] if number in shown and number > 0]
    lines = [line for number in dict.fromkeys(done) for line in runnable_lines(steps[number - 1])]
    score = min(max(float(answer["score"]), 0.0), 1.0 if passed else _FAILED_SCORE_MAX)
    return replace(
        by_rules,
        success=passed and answer["success"],
        critique=_borne_out(answer["critique"], material) or by_rules.critique,
        score=round(score, 2),
        key_decisions=_decisions(answer["key_decisions"], steps, shown),
        is_repeatable=passed and answer["is_repeatable"],
        suggested_skill_name=in_a_line(answer["skill_name"], _NAME_CHARS_MAX) or by_rules.suggested_skill_name,
        extracted_code="\n".join(lines) or by_rules.extracted_code,
        analyst=name,
    )


def _shown(steps: Sequence[LoggedStep], tests: Sequence[str], passed: bool, tokens_max: int) -> dict[int, str]:
    """The steps as the model sees them, by number. A long log is cut to its first five steps and the newest that fit.

    Number 0 is the result of the verification.
    """
    verdict = f"[0 verification {'passed' if passed else 'failed'}]"
    shown = {0: entry(verdict, ", ".join(tests[:20]) or "no test was named")}
    left = tokens_max - estimated_tokens(shown[0])
    beginning = range(min(5, len(steps)))
    for at in [*beginning, *range(len(steps) - 1, len(beginning) - 1, -1)]:
        step = steps[at]
        data = [f"{name}: {_cut(str(step.data[name]))}" for name in _SHOWN_DATA if name in step.data]
        text = entry(f"[{at + 1} {step.kind or 'note'}]", "\n".join([_cut(step.text), *data]))
        left -= estimated_tokens(text)
        if left < 0:
            break
        shown[at + 1] = text
    return dict(sorted(shown.items()))


def _decisions(
    said: Sequence[Mapping[str, Any]], steps: Sequence[LoggedStep], shown: Mapping[int, str]
) -> tuple[str, ...]:
    """The decisions that one of the agent's own steps states in similar words. A reason not in the log is left out."""
    everything = frozenset(tokens("\n".join(shown.values())))
    kept: dict[str, None] = {}
    for each in said:
        number = each["step"]
        choice, reason = in_a_line(each["choice"], _CHOICE_CHARS_MAX), in_a_line(each["reason"], _CHOICE_CHARS_MAX)
        own = number > 0 and number in shown and steps[number - 1].kind.lower() in _AGENTS_OWN
        if own and _is_said(choice, frozenset(tokens(shown[number]))):
            because = f" (because {reason})" if reason and _is_said(reason, everything) else ""
            kept[f"{choice}{because}"] = None
    return tuple(kept)[:_DECISIONS_MAX]


def _is_said(text: str, words: Collection[str]) -> bool:
    wanted = query_tokens(text)
    return bool(wanted) and sum(word in words for word in wanted) >= _SHARE_MIN * len(wanted)


def _borne_out(critique: str, material: str) -> str:
    """The sentences of a critique whose names all occur in the log."""
    sentences = pattern(_SENTENCE_END).split(in_a_line(critique, _CRITIQUE_CHARS_MAX))
    names = [["".join(groups) for groups in pattern(_NAMES).findall(sentence)] for sentence in sentences]
    return " ".join(
        sentence for sentence, named in zip(sentences, names, strict=True) if all(name in material for name in named)
    )


def _cut(text: str) -> str:
    half = _STEP_CHARS_MAX // 2
    return text if len(text) <= _STEP_CHARS_MAX else f"{text[:half]}\n[…]\n{text[-half:]}"


class LLMClassifier:
    """A classifier that asks a model (M2). It says where a text belongs, never whether it is true."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def classify(self, event: MemoryEvent) -> Classified:
        buckets = [str(bucket) for bucket in Bucket]
        schema = _object(bucket=_TEXT | {"enum": buckets}, confidence={"type": "number"}, why=_TEXT)
        material = fenced([entry(f"[{event.source}]", _cut(event.text))])
        answer = self._model.answer(_SORTING, material, schema)
        confidence = min(max(float(answer["confidence"]), 0.0), 1.0)
        return Classified(Bucket(answer["bucket"]), confidence, in_a_line(answer["why"], _WHY_CHARS_MAX))
