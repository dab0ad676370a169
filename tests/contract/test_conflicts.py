"""Which statements oppose each other when they are remembered, and which only say the same in other words (R5, R6)."""

from __future__ import annotations

import pytest

from mnemarch import Claim

OPPOSED = [
    ("The client must retry on a timeout", "The client must not retry on a timeout"),
    ("Checkout retries 3 times", "Checkout retries 5 times"),
    ("The limit lives in `foo_a` of the config", "The limit lives in `foo_b` of the config"),
    ("The limit lives in foo_a of the config", "The limit lives in foo_b of the config"),
    ("The cache is enabled in production", "The cache is disabled in production"),
    ("클라이언트는 타임아웃 시 재시도해야 한다", "클라이언트는 타임아웃 시 재시도하지 않아야 한다"),
    ("결제는 3번 재시도한다", "결제는 5번 재시도한다"),
    ("한도는 설정의 foo_a 에 있다", "한도는 설정의 foo_b 에 있다"),
    ("토큰을 저장해야 한다", "토큰을 저장하면 안 된다"),
    ("토큰을 저장해야 합니다", "토큰을 저장해서는 안 됩니다"),
    ("토큰을 저장해도 된다", "토큰을 저장하면 안 된다"),
    ("토큰을 저장해야 한다", "토큰을 저장하지 않아도 된다"),
    ("토큰은 저장하면 안 된다", "토큰은 저장하지 않아도 된다"),
    ("로그를 남긴다", "로그를 남기지 말아야 한다"),
    ("로그를 남겨야 한다", "로그를 남기지 않는다"),
    ("로그를 남겨야 한다", "로그는 남기면 안 됩니다"),
    ("로그인이 필요하다", "로그인이 필요없다"),
    ("로그인이 필요하다", "로그인이 필요 없다"),
    ("로그인이 필요하다", "로그인은 필요하지 않다"),
    ("로그인이 필요하다", "로그인이 불필요하다"),
    ("테스트를 건너뛴다", "테스트를 건너뛰지 않는다"),
    ("설정 파일을 만든다", "설정 파일을 만들지 않는다"),
    ("이 서버는 요청을 따로 묶는다", "이 서버는 요청을 따로 묶지 않는다"),
    ("사용자는 비밀번호를 바꿀 수 있다", "사용자는 비밀번호를 바꿀 수 없다"),
    ("배포 전에 테스트를 돌린다", "배포 후에 테스트를 돌린다"),
    ("외부 접근을 허용한다", "외부 접근을 금지한다"),
    ("외부 접근을 허용한다", "외부 접근을 허용하지 않는다"),
    ("캐시를 켠다", "캐시를 끈다"),
    ("재시도는 세 번이다", "재시도는 다섯 번이다"),
    ("큐에 메시지를 쌓는다", "큐에 메시지를 쌓지 마세요"),
    ("응답은 압축한다", "응답은 압축하지 말 것"),
    ("이 값은 상수다", "이 값은 상수가 아니다"),
    ("작업은 동기로 돈다", "작업은 비동기로 돈다"),
    ("Nobody may push", "Everybody may push"),
    ("No one may push to main", "Everyone may push to main"),
    ("Users lack permission", "Users have permission"),
    ("Include tests in the build", "Exclude tests from the build"),
    ("The call is legal", "The call is illegal"),
    ("The pattern is regular", "The pattern is irregular"),
    ("The record is mutable", "The record is immutable"),
    ("The read is blocking", "The read is non-blocking"),
    ("The output is deterministic", "The output is nondeterministic"),
    ("Deploys are allowed on Fridays", "Deploys are not allowed on Fridays"),
    ("Deploys are allowed on Fridays", "Deploys are forbidden on Fridays"),
    ("Tokens must be stored", "Tokens must not be stored"),
    ("The flag is set", "The flag is unset"),
    ("Login is required", "Login isn't required"),
    ("The pool holds a single connection", "The pool holds a double connection"),
    ("Retry the request three times", "Retry the request five times"),
    ("The cache is always warm", "The cache is never warm"),
    ("Wrap it in <main> tags", "Wrap it in <aside> tags"),
    ("The mode is «red»", "The mode is «blue»"),
    ("모드는 《빨강》이다", "모드는 《파랑》이다"),
    ("The total is price + tax", "The total is price - tax"),
]
NOT_OPPOSED = [
    ("토큰을 저장해야 한다", "토큰은 저장해야 합니다"),
    ("토큰을 저장하면 안 된다", "토큰은 저장하지 말아야 한다"),
    ("토큰을 저장하면 안 된다", "토큰을 저장해서는 안 됩니다"),
    ("토큰을 저장하지 않으면 안 된다", "토큰을 저장해야 한다"),
    ("로그를 남긴다", "로그를 남깁니다"),
    ("로그를 남긴다", "로그를 남겨야 한다"),
    ("로그를 남기지 않는다", "로그는 남기지 않습니다"),
    ("로그를 안 남긴다", "로그를 남기지 않는다"),
    ("로그인이 필요없다", "로그인은 필요하지 않다"),
    ("로그인이 필요 없다", "로그인이 불필요하다"),
    ("로그인이 필요하다", "로그인할 필요가 있다"),
    ("외부 접근을 금지한다", "외부 접근은 허용하지 않는다"),
    ("외부 접근을 금지하지 않는다", "외부 접근을 허용한다"),
    ("파일이 없으면 안 된다", "파일이 있어야 한다"),
    ("권한이 없다", "권한이 있지 않다"),
    ("재시도는 세 번이다", "재시도는 3번입니다"),
    ("타임아웃은 30초다", "타임아웃은 30 초이다"),
    ("설정 파일을 만든다", "설정 파일을 만듭니다"),
    ("배포는 금요일에 한다", "배포를 금요일에 합니다"),
    ("이 값은 상수다", "이 값은 상수입니다"),
    ("서버에서 클라이언트로 보낸다", "서버에서 클라이언트로 보냅니다"),
    ("캐시는 비활성화한다", "캐시는 활성화하지 않는다"),
    ("주문 서비스가 재고를 확인한다", "결제 서비스가 환불을 처리하지 않는다"),
    ("로그인이 필요하다", "로그아웃은 필요하지 않다"),
    ("관리자는 삭제할 수 있다", "손님은 조회할 수 없다"),
    ("Deploys are forbidden", "Deploys are not allowed"),
    ("Deploys are not forbidden", "Deploys are allowed"),
    ("The cache should not be enabled", "The cache should be disabled"),
    ("The call is not legal", "The call is illegal"),
    ("The read is not blocking", "The read is non-blocking"),
    ("The token is invalid", "The token is not valid"),
    ("Nobody may push", "No one may push"),
    ("Users lack permission", "Users do not have permission"),
    ("The flag isn't set", "The flag is not set"),
    ("Retry three times", "Retry 3 times"),
    ("The pool holds a single connection", "The pool holds one connection"),
    ("The import is implicit", "The import is explicit"),
    ("Users understand the limit", "Users stand the limit"),
    ("The unit tests run first", "The unit tests run"),
    ("The index is informative", "The index is formative"),
    ("Tests run per second", "Tests run each second"),
    ("Include tests in the build", "Include the tests into a build"),
    ("Reads must not lock the table", "Writes must lock the row"),
    ("Not all tests pass", "No test passes"),
    ("The price is computed by the server", "The price is not shown by the client"),
    ("Store the token in the vault", "Do not print the password in the log"),
    ("call getUser() first", "call getUser first"),
    ("Call foo() from the worker", "Call bar() from the worker"),
    ("Call `foo()` from the worker", "Call foo() from the worker"),
    ("The ratio is a-b", "The ratio is a - b"),
]


@pytest.mark.parametrize(("known", "new"), OPPOSED)
def test_r6_opposed_statements_never_merge_and_open_one_conflict(seats, known, new):
    first = seats.agent("a").remember(known, level="task").unit
    stored = seats.agent("b").remember(new, level="task")
    assert not stored.merged
    assert stored.unit.id != first.id
    (conflict,) = stored.conflicts
    assert set(conflict.units) == {first.id, stored.unit.id}
    assert conflict.open
    assert conflict.reason
    assert [item.id for item in seats.agent().conflicts()] == [conflict.id]
    assert seats.memory.stats().open_conflicts == 1


@pytest.mark.parametrize(("known", "new"), OPPOSED[:8])
def test_r6_opposed_statements_of_one_batch_open_a_conflict(seats, known, new):
    first, second = seats.agent().remember_many([Claim(content=known), Claim(content=new)])
    assert first.unit.id != second.unit.id
    assert len(second.conflicts) == 1


@pytest.mark.parametrize(
    ("known", "new"), [("관리자만 지운다", "관리자가 지운다"), ("Copy to the disk", "Copy from the disk")]
)
def test_where_only_direction_or_extent_differs_nothing_is_proposed(seats, known, new):
    agent = seats.agent()
    agent.remember(known)
    stored = agent.remember(new)
    assert (stored.merged, stored.conflicts, stored.similar) == (False, (), ())


@pytest.mark.parametrize(("known", "new"), NOT_OPPOSED)
def test_statements_that_can_both_be_true_open_no_conflict(seats, known, new):
    agent = seats.agent()
    agent.remember(known)
    assert agent.remember(new).conflicts == ()
    assert agent.conflicts() == []
