"""The words of decision records, English and Korean: what sections, statuses and relations are called."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_outline import without_comments
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

_NAME_CHARS_MAX = 80

# What a section, a line of the head or a run-in heading is about.
_ROLES = {
    "title": "title, 제목",
    "status": "status, 상태",
    "date": "date, 날짜, 일자, 작성일, 결정일",
    "deciders": "deciders, decider, decision makers, decision maker, decided by, 결정자, 의사결정자, 의사 결정자",
    "context": (
        "context, context and problem statement, context and problem, problem statement, problem, background, "
        "맥락, 배경, 문맥, 컨텍스트, 맥락과 문제, 맥락과 문제 정의, 맥락 및 문제 정의, 배경과 문제, 배경 및 문제, "
        "배경 및 문제 정의, 문제 정의, 문제"
    ),
    "drivers": "decision drivers, drivers, forces, 결정 요인, 결정 동인, 고려 사항, 고려사항",
    "options": (
        "considered options, options considered, options, considered alternatives, alternatives considered, "
        "alternatives, 고려한 선택지, 고려된 선택지, 선택지, 검토한 선택지, 고려한 옵션, "
        "고려한 대안, 검토한 대안, 대안, 옵션"
    ),
    "decision": "decision, decision outcome, outcome, 결정, 결정 사항, 결정사항, 결정 내용, 결정 결과, 의사결정",
    "consequences": "consequences, consequence, given up, 결과, 영향, 결과와 영향, 결과 및 영향, 포기한 것",
    "effects": (
        "positive consequences, negative consequences, neutral consequences, "
        "긍정적 결과, 부정적 결과, 긍정적인 결과, 부정적인 결과, 긍정적 영향, 부정적 영향"
    ),
    "confirmation": "confirmation, validation, 확인, 검증",
    "pros": (
        "pros and cons of the options, pros and cons, pros and cons of the alternatives, "
        "선택지의 장단점, 옵션의 장단점, 대안의 장단점, 장단점"
    ),
    "more": "more information, 추가 정보, 더 알아보기",
    "links": "links, related decisions, related adrs, related, 링크, 관련 결정, 관련 문서, 관련",
}
# The names by which a record is known to be of the MADR form.
MADR_NAMES = frozenset(
    [
        "context and problem statement",
        "decision outcome",
        "맥락과 문제 정의",
        "맥락 및 문제 정의",
        "배경 및 문제 정의",
        "결정 결과",
    ]
)

# What a status is called. In Korean the words are nouns, which `_ENDINGS` make verbs of.
_STATUSES = {
    "proposed": "proposed, proposal, under review, in review, in discussion, open, 제안, 검토, 논의, 검토중, 검토 중, "
    "논의중, 논의 중",
    "pending": "pending, pending approval, pending review, pending acceptance, pending decision, approval pending, "
    "awaiting approval, awaiting review, awaiting decision, waiting for approval, waiting for review",
    "draft": "draft, 초안, 작성중, 작성 중",
    "accepted": "accepted, agreed, ratified, confirmed, endorsed, signed off, 승인, 채택, 수락, 확정",
    "decided": "decided, 결정됨, 결정 완료",
    "implemented": "implemented, applied, 구현, 적용, 적용중, 적용 중",
    "active": "active, 유효, 사용중, 사용 중",
    "in effect": "in effect, in force, effective, enforced, live, 시행, 시행중, 시행 중",
    "done": "done, complete, completed, 완료",
    "final": "final, finalized, finalised",
    "rejected": "rejected, denied, 거부, 거절, 기각, 반려, 부결",
    "deprecated": "deprecated, 폐기, 사용중단, 사용 중단, 더 이상 사용되지 않음",
    "withdrawn": "withdrawn, revoked, rescinded, 철회",
    "superseded": "superseded, superceded, superseeded, replaced, 대체",
    "partially superseded": "partially superseded, partly superseded, superseded partially, superseded partly, "
    "superseded in part, partially replaced, partly replaced, 일부 대체, 일부 대체됨, 부분 대체, 부분 대체됨",
    "to be deprecated": "deprecation pending, deprecation planned, pending deprecation, scheduled for deprecation",
    "deferred": "deferred, 보류",
    **dict.fromkeys(["approved", "adopted", "rfc", "wip", "abandoned", "postponed", "declined"], ""),
    **dict.fromkeys(["obsolete", "retired", "expired", "archived", "provisional"], ""),
}
# Words that say no more beside a status, that may stand before it, and after which a line that began with it goes on.
_BESIDE_STATUS = {
    "beside": "by, on, and, as, of, since, in, with, at, the, from, to, status, adr, 상태, 현재, 에, 의해, 으로, 로, "
    "을, 를, 함, 한다, 됨, jan, january, feb, february, mar, march, apr, april, may, jun, june, jul, july, aug, "
    "august, sep, sept, september, oct, october, nov, november, dec, december",
    "before": "status, 상태, current, currently, now, 현재, as, of, on, the, this, decision, adr, is, was, has, been",
    "after": "by, on, since, in, at, as, from, with, after, for, until, during, per, via, and, but, 에, 의해, 로, 으로",
}
_ENDINGS = ("", "됨", "된", "함", "되었음", "되었다", "되었습니다", "됐음", "됐다", "하였음", "했음", " 완료")
# What a status is said with that has not come yet: "to be deprecated" still holds, "승인 대기" does not hold so far.
_TO_COME = ("to be", "soon to be", "about to be", "will be", "not yet")
_KOREAN_TO_COME = (
    *("대기", "대기중", "대기 중", "예정", "예정임", "전", "필요", "요청", "요청중", "요청 중", "진행중", "진행 중"),
    *("검토", "검토중", "검토 중", "논의", "논의중", "논의 중"),
)
# The record was decided: it holds, or it held once. Any other was never in force.
_IN_FORCE = frozenset({"", "accepted", "approved", "adopted", "implemented", "active", "decided", "done", "final"})
_IN_FORCE |= {"in effect", "partially superseded", "to be deprecated"}
_ENDED = frozenset({"superseded", "deprecated", "obsolete", "retired", "withdrawn", "expired", "archived"})

# Said of the record that the line stands in; the passive comes first, being longer.
_RELATIONS = {
    "to_be_superseded_by": r"(?:to be|will be|not yet) (?:super[sc]ee?ded|replaced|obsoleted)[ -]by",
    "partially_superseded_by": (
        r"(?:part(?:ial)?ly|largely|mostly) super[sc]ee?ded[ -]by"
        r"|super[sc]ee?ded,? \(?(?:part(?:ial)?ly|largely|mostly|in part)\)?,? by"
    ),
    "partially_supersedes": r"part(?:ial)?ly super[sc]ee?de?s",
    "superseded_by": r"super[sc]ee?ded[ -]by|replaced[ -]by|obsoleted[ -]by",
    "supersedes": r"super[sc]ee?de?s|replaces|obsoletes",
    "amended_by": r"amended[ -]by",
    "amends": r"amends",
    "clarified_by": r"clarified[ -]by",
    "clarifies": r"clarifies",
    "extended_by": r"extended[ -]by",
    "extends": r"extends",
    "refined_by": r"refined[ -]by",
    "refines": r"refines",
    "required_by": r"required[ -]by",
    "depends_on": r"depends[ -]on|requires",
    "constrained_by": r"constrained[ -]by",
    "constrains": r"constrains",
    "validated_by": r"validated[ -]by",
    "validates": r"validates",
    "conflicts_with": r"conflicts[ -]with",
    "relates_to": r"relate[sd][ -]to|related|see[ -]also",
}
# In Korean the verb comes last, and the particle before it tells who replaces whom.
_KOREAN_RELATIONS = {
    "to_be_superseded_by": r"(?:에 ?의해|으?로)? ?대체(?:될| ?예정| ?검토| ?논의)",
    "partially_superseded_by": r"(?:일부|부분)[^.]{0,20}대체(?![함한합하])",
    "partially_supersedes": r"(?:일부|부분)[^.]{0,20}대체",
    "superseded_by": r"(?:에 ?의해|으?로) ?대체|대체(?![함한합하])",
    "supersedes": r"[을를] ?대체|대체",
    "amended_by": r"(?:에 ?의해|으?로) ?(?:수정|개정|보완)|(?:수정|개정|보완)[됨된되]",
    "amends": r"[을를] ?(?:수정|개정|보완)|(?:수정|개정|보완)[함한합하]",
    "depends_on": r"의존",
    "relates_to": r"관련|참고",
}


@cache
def _role_names() -> dict[str, str]:
    return {name: role for role, names in _ROLES.items() for name in names.split(", ")}


@cache
def statuses() -> dict[str, str]:
    """Every word that names a status, and the status."""
    known = {word: status for status, words in _STATUSES.items() for word in (words or status).split(", ")}
    nouns = [(word, status) for word, status in known.items() if not word.isascii()]
    said = {noun + ending: status for noun, status in nouns if " " not in noun for ending in _ENDINGS}
    to_come = [(f"{before} {word}", status) for word, status in known.items() if word.isascii() for before in _TO_COME]
    endings = [space + ending for ending in _KOREAN_TO_COME for space in ("", " ")]
    to_come += [(noun + ending, status) for noun, status in nouns for ending in endings]
    return {words: "to be deprecated" if is_ended(status) else "pending" for words, status in to_come} | said | known


@cache
def words_of_status(place: str) -> frozenset[str]:
    """The words that may stand beside, before or after a status."""
    return frozenset(_BESIDE_STATUS[place].split(", "))


def is_in_force(status: str) -> bool:
    """Whether what has this status holds; a record that says nothing of its status does."""
    return status in _IN_FORCE


def is_ended(status: str) -> bool:
    """Whether what has this status was in force once."""
    return status in _ENDED


def plain_name(text: str) -> str:
    """A heading as it is compared: without number, emphasis, comment, emoji and case."""
    bare = without_comments(text)
    if len(bare) > _NAME_CHARS_MAX:
        return ""
    bare = _decoration().sub(" ", bare).replace("&", " and ").replace("-", " ")
    return " ".join(_before_a_name().sub("", bare).rstrip(" .:：?").casefold().split())


def role_of(text: str) -> str:
    """What a heading announces: "context" for "## 2. Context and Problem Statement", "" for a name of its own."""
    name = plain_name(text)
    outer, opening, inner = name.partition("(")
    known = _role_names()
    found = known.get(name) or known.get(outer.strip(), "")
    return found or (known.get(inner.rstrip(") "), "") if opening else "")


@cache
def relation() -> re.Pattern[str]:
    """Finds a relation; the name of the group is the relation's."""
    found = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _RELATIONS.items())
    return re.compile(rf"(?<![^\W_])(?:{found})(?![^\W_])", re.IGNORECASE)


@cache
def korean_relation() -> re.Pattern[str]:
    """The same for Korean, to the end of the verb."""
    found = "|".join(f"(?P<{name}>{pattern})" for name, pattern in _KOREAN_RELATIONS.items())
    return re.compile(rf"(?:{found})[가-힣]*")


@cache
def _decoration() -> re.Pattern[str]:
    return re.compile(r"[*_`]+")


@cache
def _before_a_name() -> re.Pattern[str]:
    return re.compile(r"^[\W\d_]+")
