"""General words of software work, English and Korean: which say the same action or thing, and which the opposite.

One group a line: its name, the words of it, and after a bar the words of its opposite. `~` marks a word that says
little by itself (use, set, make), `_` joins words that only together mean it (turn_off).
"""

from __future__ import annotations

ACTIONS = """
up: raise increase bump enlarge grow extend lengthen widen expand boost double triple upgrade heighten prolong maximize
  increment extension expansion larger bigger longer higher more greater 올리 올려 늘리 늘려 늘린 키우 높이 높여 증가
  확대 연장 상향 길게 크게 높게 업그레이드
  | lower decrease reduce shrink shorten cut decrement downgrade minimize diminish less fewer smaller shorter lessen
  reduction go_back_to 줄이 줄여 내리 내려 낮추 낮춰 감소 축소 단축 하향 짧게 작게 낮게 다운그레이드
on: enable activate turn_on switch_on true 켜 켠 활성 활성화 | disable deactivate turn_off switch_off off false
  끄 끈 꺼 비활성 비활성화
add: ~add ~create ~insert ~append ~include ~introduce ~install ~attach ~register ~generate
  ~addition ~creation ~insertion ~installation ~추가 ~생성 ~만들 ~만드 ~만든 ~넣 ~삽입 ~포함 ~설치 ~등록 ~붙이
  | remove delete drop exclude strip clear empty purge flush wipe erase eliminate discard uninstall detach unregister
  removal deletion clean omit rm get_rid_of reset subtract 제거 삭제 지우 지운 없애 없앤 비우 비운 빼 뺀
  제외 초기화 해제
allow: allow permit grant authorize tolerate 허용 허가 부여 | deny forbid prohibit disallow ban block revoke reject
  refuse 차단 금지 거부 거절 회수 불허
show: show display reveal 보이 보여 표시 노출 | hide conceal 숨기 숨긴 감추
run: ~run ~execute ~실행 ~돌리 ~돌려 | skip 건너뛰 건너뛴 스킵
lock: lock mutex 락 뮤텍스 잠그 잠근 잠금 | unlock
open: open 열 연 | close shut 닫
start: start launch begin boot 시작 기동 | stop halt kill terminate shutdown shut_down 중지 종료 중단 멈추
encode: encode serialize 인코드 | decode deserialize 디코드
keep: keep retain preserve 유지
read: read 읽 읽기 | write 쓰기
push: push | pull
retry: retry rerun reattempt repeat run_again try_again 재시도 재실행
regenerate: regenerate recreate create_again generate_again 재생성
restart: restart reboot relaunch start_again 재시작 재기동 재부팅
revert: revert rollback undo restore roll_back 되돌리 되돌려 롤백 복원 원복
rename: rename 개명
move: move relocate transfer hoist mv 옮기 옮긴 옮겨 이동
copy: copy clone duplicate cp 복사 복제
wait: wait sleep delay pause 기다리 기다린 대기
catch: catch handle except trap rescue 잡 처리
throw: throw reraise re_raise 던지
ignore: ignore suppress silence swallow mute disregard 무시
mock: mock fake stub simulate 모킹 모의
pin: pin freeze 고정
limit: limit restrict cap constrain quota 제한 한도 상한
convert: convert conversion transform 변환
cancel: cancel abort interrupt 취소
compute: compute calculate calculation computation 계산
save: store save persist 저장
protect: protect guard 보호
encrypt: encrypt encryption 암호화 | decrypt decryption 복호화
import: import | export
check: check verify validate assert assertion verification validation confirm 확인 검증 검사 단언
split: split divide separate 나누 나눈 나눠 분리 쪼개
merge: merge combine unify 합치 병합
cache: cache caching memoize memo memoization 캐시 캐싱
refresh: refresh renew 갱신 새로고침 새로_고치
sort: sort 정렬
download: download 다운로드 내려받
upload: upload 업로드
deploy: deploy deployment release 배포
compile: compile compilation recompile 컴파일
compress: compress compression gzip zip 압축 | decompress unzip
normalize: normalize normalization 정규화
synchronize: synchronize 동기화
load: load loading 로드
fetch: fetch retrieve obtain 가져오 가져온 조회
format: format reformat 포맷
~replace: replace swap substitute exchange instead_of rather_than in_place_of 교체 대체 대신
~change: change modify adjust edit alter tweak switch update turn 변경 수정 조정 전환 바꾸 바꾼 바꿔 업데이트
~set: set configure assign specify define declare 설정 지정 정의 잡는 잡아 명시
~use: use utilize employ apply via using 사용 쓰 쓴 써 이용 적용 활용
~make: make let give put provide pass supply have take get do perform call invoke ensure force wrap implement send
  acquire   주 준 제공 전달 호출 강제 맞추 감싸 감싼 묶
~happen: detect find happen occur become appear exist be come 발생 되 오면 온 나오
"""

# Qualities that exclude each other.
QUALITIES = """
~inside: inside within | outside
~upward: up upward | down downward
sync: sync synchronous synchronously 동기 | async asynchronous asynchronously 비동기
eager: eager eagerly 즉시 | lazy lazily 지연 게으르
static: static statically 정적 | dynamic dynamically 동적
public: public 공개 | private 비공개
need: required mandatory 필수 | optional 선택적
strict: strict strictly 엄격 | lenient loose
direction: ascending asc 오름차순 | descending desc 내림차순
bound: minimum min minimal 최소 | maximum max maximal 최대
success: success succeed 성공 | fail failure failed 실패
valid: valid 유효 | invalid 무효
safe: safe safely secure 안전 | unsafe insecure
"""

THINGS = """
timeout: timeout time_out 타임아웃
size: size 크기 사이즈
~number: number count amount many 개수 횟수 수
connection: connection conn 커넥션 연결
pool: pool 풀
database: database db 데이터베이스 디비
table: table 테이블
index: index 인덱스 색인
column: column 컬럼 칼럼
row: row 행
query: query 쿼리 질의
transaction: transaction tx 트랜잭션
test: test 테스트
container: container 컨테이너
image: image 이미지
memory: memory ram 메모리
heap: heap 힙
key: key 키
token: token 토큰
header: header 헤더
cookie: cookie 쿠키
session: session 세션
user: user 사용자 유저
password: password pwd passwd 비밀번호 패스워드
permission: permission privilege access 권한 접근
account: account 계정
server: server 서버
client: client 클라이언트
service: service 서비스
request: request req 요청
response: response resp reply 응답
port: port 포트
line: line 줄
issue: issue 이슈
shard: shard 샤드
node: node 노드
proxy: proxy 프록시
network: network 네트워크
file: file 파일
mode: mode chmod 모드
owner: owner ownership chown 소유자
directory: directory dir folder mkdir 디렉터리 디렉토리 폴더
path: path 경로
name: name 이름
root: root sudo superuser 루트
last: last latest 마지막 최근
null: null none nil nullable 널
timestamp: timestamp 타임스탬프
gc: gc garbage_collection garbage_collector
config: config configuration settings conf cfg 구성
environment: environment env 환경
variable: variable var 변수
parameter: parameter param argument arg 매개변수 인자 파라미터
function: function func fn method 함수 메서드 메소드
type: type 타입 자료형
annotation: annotation annotate 어노테이션
~value: value 값
default: default 디폴트 기본값
error: error err exception 오류 에러 예외
log: log logging 로그
message: message msg 메시지
~version: version ver 버전
dependency: dependency dep 의존성
package: package pkg library lib 패키지 라이브러리
module: module 모듈
build: build rebuild build_again 빌드 재빌드
migration: migration 마이그레이션
thread: thread 스레드 쓰레드
process: process proc 프로세스
worker: worker 워커
job: job task 작업 태스크
queue: queue 큐 대기열
counter: counter 카운터
buffer: buffer 버퍼
batch: batch 배치
input: input 입력
component: component 컴포넌트
screen: screen 화면
page: page 페이지
modal: modal dialog 모달
list: list 목록 리스트
item: item element 항목
event: event 이벤트
listener: listener 리스너
handler: handler 핸들러
callback: callback 콜백
time: time 시간 시각
date: date 날짜
timezone: timezone tz time_zone 시간대
clock: clock 시계
lifetime: lifetime ttl expiry expiration 만료 수명 유효기간
encoding: encoding charset 인코딩
bom: bom byte_order_mark
string: string str 문자열
regex: regex regexp regular_expression 정규식 정규표현식
pattern: pattern 패턴
character: character char 문자
repository: repository repo 저장소 레포
branch: branch 브랜치
commit: commit 커밋
workflow: workflow pipeline 워크플로 워크플로우 파이프라인
runner: runner 러너
certificate: certificate cert 인증서
authentication: authentication auth 인증
login: login signin log_in sign_in 로그인
logout: logout signout log_out sign_out 로그아웃
parallel: parallel parallelize concurrent concurrency concurrently simultaneous 병렬 동시 동시성
temporary: temporary temp tmp 임시
initialize: initialize init 초기
javascript: javascript js
typescript: typescript ts
postgres: postgres postgresql pg
kubernetes: kubernetes k8s
python: python py
tls: tls ssl
filename: filename file_name 파일명
separate: own 별도 다른
return: return 반환
missing: missing 누락 빠진
~before: before prior prior_to 전 전에
~new: new fresh 새 새로
~single: single one
~all: all every each 모든 전부 모두
block: blocking 블로킹
"""

# What nouns end in that are made of verbs and mean a thing.
OF_NOUNS = ("or", "ors", "er", "ers", "ment", "ments")

# Words of the frame of a plan: they say that something will be tried, not what.
FRAMES = """
try trying attempt approach plan fix solution idea next now then first second finally also just simply maybe perhaps
please ok okay so going want like would think should could shall need here thing instead hopefully actually
really still probably bit little only sure way possible simple quick quickly again another once
between per upon across through around along
먼저 일단 우선 이제 이번 다시 한번 한 번 더 보자 보겠 보 해보 하겠 하 것 방법 시도 좀 그냥 하나 수정안 해결 해결책 때
시 뒤 후 위해 번
"""

NEGATIONS = "not no never without non don't doesn't didn't isn't aren't won't can't cannot shouldn't avoid"
# A whole number right after any other word says which one it is (port 8080, line 40); after these how much.
QUANTITIES = """
size limit timeout time number count amount level depth length width height interval delay rate ratio version ttl
lifetime maximum minimum max min bound batch worker retry thread memory heap concurrency quota target standard
크기 값
"""
