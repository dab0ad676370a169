"""What sources define, and which changes to them matter."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemarch.code.symbols import SOURCE_CHARS_MAX, Symbols, agrees, find, language_of, symbols_of

PYTHON = '''
import os
from typing import overload as once

MAX_TRIES: int = 3
first, second = 1, 2

class Auth(Base, metaclass=Meta):
    """Logs in."""
    name: "str"

    def __init__(self, pool: Pool, /, *hosts: str, tries: int = 3, **rest) -> None:
        self.pool = pool
        self.seen: dict[str, int] = {}

    @retry(3)
    async def login(self, user: User | None, password: str = "x") -> Annotated[Token, Field(gt=0)]:
        limit = 3
        def attempt(number): ...

    @once
    def close(self, now: int): ...
    @once
    def close(self, now: str): ...
    def close(self, now): ...

if os.name == "nt":
    def home(): ...
else:
    def home(user): ...
'''

PYTHON_FOUND = {
    "MAX_TRIES": ("constant", "MAX_TRIES: int"),
    "first": ("variable", "first"),
    "once": ("import", "once"),
    "Auth": ("class", "class Auth(Base, metaclass=Meta)"),
    "Auth.name": ("variable", "name: str"),
    "Auth.__init__": ("method", "__init__(self, pool: Pool, /, *hosts: str, tries: int=3, **rest) -> None"),
    "Auth.pool": ("field", "pool"),
    "Auth.seen": ("field", "seen: dict[str, int]"),
    "Auth.login": (
        "method",
        "async login(self, user: User | None, password: str='x') -> Annotated[Token, Field(gt=0)]",
    ),
    "Auth.login.attempt": ("function", "attempt(number)"),
    "Auth.close": ("method", "close(self, now: int)\nclose(self, now: str)\nclose(self, now)"),
    "home": ("function", "home()\nhome(user)"),
}

JAVASCRIPT = """
import { x } from './x';
export class Auth extends Base {
  #secret = 1;
  static tries = 3;
  constructor(pool) { super(); const local = 1; }
  async *tokens(user, { scope } = {}, ...rest) { }
  get open() { return true; }
  set open(value) { }
  onClose = (code) => { };
}
export default function login(user, password = 'x') { function attempt(number) {} const limit = 3; }
export const logout = async user => { }, MAX = 3;
const { host, port: gate } = settings;
module.exports = { start(port) { }, stop: function (now) { } };
exports.reset = function (hard) { };
Auth.prototype.renew = function (token) { };
const api = { users: { list(page) { } } };
export { host as hostName };
describe('login', () => { const local = 1; });
"""

JAVASCRIPT_FOUND = {
    "Auth": ("class", "class Auth extends Base"),
    "Auth.secret": ("field", "#secret"),
    "Auth.tries": ("field", "static tries"),
    "Auth.constructor": ("method", "constructor(pool)"),
    "Auth.tokens": ("method", "async *tokens(user, { scope }={}, ...rest)"),
    "Auth.open": ("method", "get open()\nset open(value)"),
    "Auth.onClose": ("method", "onClose(code)"),
    "Auth.renew": ("function", "renew(token)"),
    "login": ("function", 'login(user, password="x")'),
    "login.attempt": ("function", "attempt(number)"),
    "logout": ("function", "async logout(user)"),
    "MAX": ("constant", "MAX"),
    "host": ("variable", "host"),
    "gate": ("variable", "gate"),
    "start": ("function", "start(port)"),
    "stop": ("function", "stop(now)"),
    "reset": ("function", "reset(hard)"),
    "api": ("constant", "api"),
    "api.users.list": ("function", "list(page)"),
    "hostName": ("import", "hostName"),
}

TYPESCRIPT = """
export interface Session<T> extends Base { readonly id: string; close?(code: number): void; }
export type Level =
  | 'low'
  | "high";
type Options = { deep: boolean };
export enum Color { Red, Green = 'g' }
export abstract class Auth<T> extends Base<T> implements Session {
  private token?: string;
  constructor(private readonly pool: Pool, @Inject() name?: string) { }
  protected abstract check(user: string): boolean;
  find(id: string): User;
  find(id: number): User;
  find(id: any): User { return users[id]; }
  handler = async (event: Event): Promise<void> => { };
}
export async function login<T>(user: string, opts: { deep: boolean; to?: number }, ...rest: any[]): Promise<T> { }
declare function ambient(x: number): void;
export namespace Shop.Cart { export const limit: number = 3; }
export const retry: Policy = { tries: 3 };
"""

TYPESCRIPT_FOUND = {
    "Session": ("interface", "interface Session<T> extends Base"),
    "Session.id": ("field", "id: string"),
    "Session.close": ("method", "close?(code: number): void"),
    "Level": ("type", 'type Level = "low" | "high"'),
    "Options": ("type", "type Options = {…}"),
    "Color": ("enum", "enum Color"),
    "Color.Red": ("constant", "Red"),
    "Color.Green": ("constant", "Green"),
    "Auth": ("class", "class Auth<T> extends Base<T> implements Session"),
    "Auth.token": ("field", "token?: string"),
    "Auth.constructor": ("method", "constructor(readonly pool: Pool, name?: string)"),
    "Auth.check": ("method", "check(user: string): boolean"),
    "Auth.find": ("method", "find(id: string): User\nfind(id: number): User\nfind(id: any): User"),
    "Auth.handler": ("method", "async handler(event: Event): Promise<void>"),
    "login": (
        "function",
        "async login<T>(user: string, opts: { deep: boolean, to?: number }, ...rest: any[]): Promise<T>",
    ),
    "ambient": ("function", "ambient(x: number): void"),
    "Shop.Cart.limit": ("constant", "limit: number"),
    "retry": ("constant", "retry: Policy"),
}

TSX = """
export function Button({ label, onClick }: Props): JSX.Element { return <button onClick={onClick}>{label}</button>; }
export const Card: React.FC<Props> = ({ title }) => <div>{title}</div>;
"""

TSX_FOUND = {
    "Button": ("function", "Button({ label, onClick }: Props): JSX.Element"),
    "Card": ("function", "Card({ title })"),
}

GO = """
package auth

const MaxTries = 3
const (
	Low int = iota
	High
)

var a, b = 1, 2

type User struct {
	Name, Mail string `json:"name"`
	*Base
}
type Store interface {
	Get(id string) (User, error)
}
type ID = string
type Handler func(int) error
type Cache[T any] struct{}

func (a *Auth) Login(user, password string, rest ...int) (token string, err error) { limit := 3; return }
func (c Cache[T]) Put(item T) {}
func Map[T, U any](items []T, f func(T) U, m map[string]int) []U { return nil }
"""

GO_FOUND = {
    "MaxTries": ("constant", "MaxTries"),
    "Low": ("constant", "Low int"),
    "High": ("constant", "High"),
    "b": ("variable", "b"),
    "User": ("struct", "User struct"),
    "User.Name": ("field", "Name string"),
    "User.Mail": ("field", "Mail string"),
    "Store": ("interface", "Store interface"),
    "Store.Get": ("method", "Get(id string) (User, error)"),
    "ID": ("type", "ID = string"),
    "Handler": ("type", "Handler func(int) error"),
    "Cache": ("struct", "Cache[T any] struct"),
    "Auth.Login": ("method", "(*Auth) Login(user, password string, rest ...int) (token string, err error)"),
    "Cache.Put": ("method", "(Cache[T]) Put(item T)"),
    "Map": ("function", "Map[T, U any](items []T, f func(T) U, m map[string]int) []U"),
}

RUST = """
pub const MAX: u32 = 3;
#[derive(Debug)]
pub struct User<T> where T: Clone, { pub name: String, id: T }
pub struct Point(u8, u8);
pub enum Level { Low, High(u8) }
pub trait Store: Send { type Item; fn get(&self, id: &str) -> Option<User>; }
impl<T> Store for User<T> { fn get<'a>(&'a self, id: &'a str) -> Option<User> { None } }
impl User<u8> {
    pub async fn new(name: String, rows: impl Iterator<Item = u8>) -> Self { const LOCAL: u8 = 1; fn inner() {} }
}
type Id = u64;
mod auth { pub(crate) unsafe fn login(user: &mut User) {} }
macro_rules! retry { () => {} }
"""

RUST_FOUND = {
    "MAX": ("constant", "const MAX: u32"),
    "User": ("struct", "struct User<T> where T: Clone"),
    "User.name": ("field", "name: String"),
    "Point": ("struct", "struct Point(u8, u8)"),
    "Level.High": ("constant", "High(u8)"),
    "Store": ("trait", "trait Store: Send"),
    "Store.get": ("method", "get(&self, id: &str) -> Option<User>"),
    "User.get": ("method", "get<'a>(&'a self, id: &'a str) -> Option<User>"),
    "User.new": ("method", "async new(name: String, rows: impl Iterator<Item = u8>) -> Self"),
    "User.new.inner": ("function", "inner()"),
    "Id": ("type", "type Id = u64"),
    "auth.login": ("function", "unsafe login(user: &mut User)"),
    "retry": ("function", "retry"),
}

JAVA = """
package shop;
@Service public abstract class Auth<T> extends Base implements Store, Closeable {
  private static final int MAX = 3, MIN = 1;
  @Inject String name;
  public Auth(int pool) { int local = 1; }
  @Override public <R> List<R> login(final String user, int[] marks, int... rest) throws IOException { return null; }
  void login(String user) { }
  enum Color { RED, GREEN(1) { }; int code() { return 1; } }
}
interface Store { int LIMIT = 3; User get(String id); default void close() { } }
record Point(int x, int y) implements Store { }
"""

JAVA_FOUND = {
    "Auth": ("class", "class Auth<T> extends Base implements Store, Closeable"),
    "Auth.MAX": ("constant", "int MAX"),
    "Auth.MIN": ("constant", "int MIN"),
    "Auth.name": ("field", "String name"),
    "Auth.Auth": ("method", "Auth(int pool)"),
    "Auth.login": (
        "method",
        "<R> List<R> login(String user, int[] marks, int ...rest) throws IOException\nvoid login(String user)",
    ),
    "Auth.Color": ("enum", "enum Color"),
    "Auth.Color.RED": ("constant", "RED"),
    "Auth.Color.code": ("method", "int code()"),
    "Store.LIMIT": ("constant", "int LIMIT"),
    "Store.get": ("method", "User get(String id)"),
    "Store.close": ("method", "void close()"),
    "Point": ("class", "record Point(int x, int y) implements Store"),
}

C = """
#define MAX 3
#define SQUARE(x) ((x) * (x))
static const int limit = 5;
int *table[3], *last = 0;
typedef struct point { int x, y; char *name; } Point;
typedef struct { int z; } Bare;
typedef int (*callback)(int, void *);
enum color { RED, GREEN = 2 };
static inline int *login(int user, const char* password, ...) { int local = 1; return 0; }
int logout(int, char *);
#ifdef DEBUG
void trace(void) { }
#endif
"""

C_FOUND = {
    "MAX": ("constant", "MAX"),
    "SQUARE": ("function", "SQUARE(x)"),
    "limit": ("variable", "static const int limit"),
    "table": ("variable", "int *table[3]"),
    "last": ("variable", "int *last"),
    "Point": ("type", "struct point Point"),
    "point": ("struct", "struct point"),
    "point.name": ("field", "char *name"),
    "Bare.z": ("field", "int z"),
    "callback": ("type", "int(*callback) (int, void *)"),
    "color": ("enum", "enum color"),
    "color.GREEN": ("constant", "GREEN"),
    "login": ("function", "static int *login(int user, const char *password, ...)"),
    "logout": ("function", "int logout(int, char *)"),
    "trace": ("function", "void trace(void)"),
}

CPP = """
namespace shop {
template <typename T, int N = 3> class Auth final : public Base<T>, private Log {
 public:
  explicit Auth(int pool) : pool_(pool) {}
  ~Auth();
  virtual bool login(const std::string& user, int tries = 3) const override = 0;
  bool login(int id);
  static int count;
  struct Seat { int row; };
  template <class U> void visit(U visitor);
};
void Auth::logout(int code) const noexcept { int local = 1; }
bool operator==(const Auth& a, const Auth& b) { return true; }
using Id = unsigned long;
enum class Color : int { Red, Green };
}
extern "C" { void hook(int code); }
template <typename T> T largest(T a, T b) { return a; }
"""

CPP_FOUND = {
    "shop": ("namespace", "namespace shop"),
    "shop.Auth": ("class", "<typename T, int N=3> class Auth: Base<T>, Log"),
    "shop.Auth.Auth": ("method", "Auth(int pool)"),
    "shop.Auth.~Auth": ("method", "~Auth()"),
    "shop.Auth.login": ("method", "bool login(const std::string &user, int tries=3) const\nbool login(int id)"),
    "shop.Auth.logout": ("function", "void logout(int code) const noexcept"),
    "shop.Auth.count": ("field", "static int count"),
    "shop.Auth.Seat.row": ("field", "int row"),
    "shop.Auth.visit": ("method", "<class U> void visit(U visitor)"),
    "shop.operator==": ("function", "bool operator==(const Auth &a, const Auth &b)"),
    "shop.Id": ("type", "using Id = unsigned long"),
    "shop.Color": ("enum", "enum class Color: int"),
    "shop.Color.Red": ("constant", "Red"),
    "hook": ("function", "void hook(int code)"),
    "largest": ("function", "<typename T> T largest(T a, T b)"),
}

RUBY = """
module Shop
  MAX = 3
  class Auth < Base
    attr_accessor :name, :age
    def login(user, password = nil, *rest, key:, opt: 1, **more, &block)
      local = 1
    end
    def self.make(pool) = pool
    def name=(value); end
    def open?; end
    class << self
      def default; end
    end
  end
end
"""

RUBY_FOUND = {
    "Shop": ("namespace", "module Shop"),
    "Shop.MAX": ("constant", "MAX"),
    "Shop.Auth": ("class", "class Auth < Base"),
    "Shop.Auth.name": ("field", ":name"),
    "Shop.Auth.age": ("field", ":age"),
    "Shop.Auth.login": ("method", "login(user, password=nil, *rest, key:, opt: 1, **more, &block)"),
    "Shop.Auth.make": ("method", "self.make(pool)"),
    "Shop.Auth.open?": ("method", "open?()"),
    "Shop.Auth.default": ("method", "default()"),
}

KOTLIN = """
package shop

const val MAX = 3
typealias Id = String

@Entity
data class User<T>(val name: String, var age: Int = 3) : Base(name), Store where T : Any {
    companion object {
        fun make(): User = User()
    }
    suspend fun login(user: String, vararg rest: Int, done: (Int) -> Unit = {}): Result<T> {
        val local = 1
        fun attempt() {}
    }
    val open: Boolean get() = true
    constructor(code: Int) : this() {}
}

interface Store {
    fun get(id: String): User?
}

object Registry {
    fun clear() {}
}

enum class Color(val code: Int) { RED(1), GREEN(2) }

fun String.shout(times: Int): String = this
"""

KOTLIN_FOUND = {
    "MAX": ("constant", "MAX"),
    "Id": ("type", "typealias Id = String"),
    "User": ("class", "data class User<T>(name: String, age: Int=3): Base, Store where T: Any"),
    "User.name": ("field", "name: String"),
    "User.make": ("method", "make(): User"),
    "User.login": ("method", "suspend login(user: String, vararg rest: Int, done: (Int) -> Unit={}): Result<T>"),
    "User.login.attempt": ("function", "attempt()"),
    "User.open": ("variable", "open: Boolean"),
    "User.constructor": ("method", "constructor(code: Int)"),
    "Store": ("interface", "interface Store"),
    "Store.get": ("method", "get(id: String): User?"),
    "Registry": ("class", "object Registry"),
    "Registry.clear": ("method", "clear()"),
    "Color": ("enum", "enum class Color(code: Int)"),
    "Color.RED": ("constant", "RED"),
    "shout": ("function", "String.shout(times: Int): String"),
}

CSHARP = """
namespace Shop;
[Serializable] public abstract class Auth<T> : Base, IStore where T : class {
  public const int Max = 3;
  private readonly string _name, _mail;
  public string Name { get; set; } = "x";
  public Auth(int pool) : base(pool) { }
  public async Task<T> Login(string user, int tries = 3, params int[] rest) { int Attempt(int n) => n; return null; }
  public static Auth operator+(Auth a, Auth b) => a;
}
interface IStore { User Get(string id); }
struct Point { public int X; }
enum Color { Red, Green = 2 }
public record Seat(int Row, int Number) : IPlace;
"""

CSHARP_FOUND = {
    "Auth": ("class", "class Auth<T>: Base, IStore where T: class"),
    "Auth.Max": ("field", "int Max"),
    "Auth._mail": ("field", "string _mail"),
    "Auth.Name": ("field", "string Name"),
    "Auth.Auth": ("method", "Auth(int pool)"),
    "Auth.Login": ("method", "async Task<T> Login(string user, int tries=3, params int[] rest)"),
    "Auth.Login.Attempt": ("function", "int Attempt(int n)"),
    "Auth.operator+": ("method", "static Auth operator +(Auth a, Auth b)"),
    "IStore.Get": ("method", "User Get(string id)"),
    "Point.X": ("field", "int X"),
    "Color.Green": ("constant", "Green"),
    "Seat": ("class", "record Seat(int Row, int Number): IPlace"),
}

PHP = """<?php
namespace App\\Auth;
const MAX = 3;
abstract class Auth extends Base implements Store {
  const LIMIT = 1;
  public static ?int $count = 0;
  public function __construct(private string $name, int $tries = 3) { }
  #[Route] public static function login(string $user, int ...$rest): ?bool { }
}
interface Store { public function get(array $ids); }
trait Logs { function log() { } }
enum Suit: string { case Hearts = 'H'; }
function helper(int &$a, $b = null): void { }
"""

PHP_FOUND = {
    "MAX": ("constant", "MAX"),
    "Auth": ("class", "class Auth extends Base implements Store"),
    "Auth.LIMIT": ("constant", "LIMIT"),
    "Auth.count": ("field", "$count"),
    "Auth.__construct": ("method", "__construct(string $name, int $tries=3)"),
    "Auth.login": ("method", "static login(string $user, int ...$rest): ?bool"),
    "Store.get": ("method", "get(array $ids)"),
    "Logs": ("trait", "trait Logs"),
    "Suit.Hearts": ("constant", "Hearts"),
    "helper": ("function", "helper(int &$a, $b=null): void"),
}

SWIFT = """
let limit: Int = 3
typealias Id = String
public final class Auth<T>: Base, Store where T: Equatable {
  static let tries = 3
  var name: String {
    get { return "" }
  }
  init(pool: Int = 3) {}
  func login(_ user: String, with password: String = "a") async throws -> Bool {
    let local = 1
    return true
  }
}
struct Point { let x: Int }
enum Color: Int {
  case red, green
  case mixed(Int)
}
protocol Store {
  func get(id: Int) -> User
}
extension Auth { mutating func renew() {} }
"""

SWIFT_FOUND = {
    "limit": ("variable", "limit: Int"),
    "Id": ("type", "typealias Id = String"),
    "Auth": ("class", "class Auth<T>: Base, Store where T: Equatable"),
    "Auth.tries": ("variable", "static tries"),
    "Auth.name": ("variable", "name: String"),
    "Auth.init": ("method", "init(pool: Int=3)"),
    "Auth.login": ("method", 'login(_ user: String, with password: String="a") async throws -> Bool'),
    "Auth.renew": ("method", "mutating renew()"),
    "Point": ("struct", "struct Point"),
    "Color.green": ("constant", "green"),
    "Color.mixed": ("constant", "mixed(Int)"),
    "Store": ("interface", "protocol Store"),
    "Store.get": ("method", "get(id: Int) -> User"),
}

SCALA = """
package shop
object Main extends App {
  val Max: Int = 3
  def login(user: String, tries: Int = 3)(implicit pool: Pool): Option[Int] = { def attempt(n: Int) = n; None }
  type Id = String
}
sealed abstract class Auth[T <: Base](val name: String, age: Int = 1) extends Core[T](name) with Store {
  def open: Boolean = true
}
trait Store { def get(id: Int): User }
case class Point(x: Int)
enum Color { case Red, Green }
"""

SCALA_FOUND = {
    "Main": ("class", "object Main extends App"),
    "Main.Max": ("constant", "Max: Int"),
    "Main.login": ("method", "login(user: String, tries: Int=3) (implicit pool: Pool): Option[Int]"),
    "Main.login.attempt": ("function", "attempt(n: Int)"),
    "Main.Id": ("type", "type Id = String"),
    "Auth": ("class", "class Auth[T <: Base](val name: String, age: Int=1) extends Core[T] with Store"),
    "Auth.name": ("field", "name: String"),
    "Auth.open": ("method", "open: Boolean"),
    "Store": ("trait", "trait Store"),
    "Store.get": ("method", "get(id: Int): User"),
    "Point.x": ("field", "x: Int"),
    "Color.Green": ("constant", "Green"),
}

SOURCES = {
    "a.py": (PYTHON, PYTHON_FOUND),
    "a.js": (JAVASCRIPT, JAVASCRIPT_FOUND),
    "a.ts": (TYPESCRIPT, TYPESCRIPT_FOUND),
    "a.tsx": (TSX, TSX_FOUND),
    "a.go": (GO, GO_FOUND),
    "a.rs": (RUST, RUST_FOUND),
    "A.java": (JAVA, JAVA_FOUND),
    "a.c": (C, C_FOUND),
    "a.cpp": (CPP, CPP_FOUND),
    "a.rb": (RUBY, RUBY_FOUND),
    "a.kt": (KOTLIN, KOTLIN_FOUND),
    "a.cs": (CSHARP, CSHARP_FOUND),
    "a.php": (PHP, PHP_FOUND),
    "a.swift": (SWIFT, SWIFT_FOUND),
    "a.scala": (SCALA, SCALA_FOUND),
}


def of(path: str, text: str) -> Symbols:
    found = symbols_of(path, text)
    assert found is not None
    return found


def signatures(path: str, text: str) -> dict[str, str]:
    return {name: symbol.signature for name, symbol in of(path, text).items()}


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_defines_these(path: str) -> None:
    text, expected = SOURCES[path]
    found = of(path, text)
    assert not found.broken
    assert {name: (found[name].kind, found[name].signature) for name in expected if name in found} == expected


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_local_to_a_function_is_no_symbol(path: str) -> None:
    assert not [name for name in of(path, SOURCES[path][0]) if name.rpartition(".")[2].lower() in {"local", "limit_"}]


@pytest.mark.parametrize("path", SOURCES)
def test_a_symbol_knows_its_lines(path: str) -> None:
    text, expected = SOURCES[path]
    lines = text.split("\n")
    for name in expected:
        symbol = of(path, text)[name]
        assert 1 <= symbol.first <= symbol.last <= len(lines)
        word = name.rpartition(".")[2].strip("?=~")
        if not word.startswith("operator"):
            assert word in "\n".join(lines[symbol.first - 1 : symbol.last])


# What is behind each arrow is the same source after a change that concerns nobody who calls it.
UNNOTICED = {
    "a.py": [
        ('password: str = "x"', "password : str='x'"),
        ("user: User | None, password", "user: User|None,  # who\n        password"),
        ("limit = 3", "limit = 4\n        return limit"),
        ("@retry(3)\n    ", ""),
        ("-> Annotated[Token, Field(gt=0)]", "-> (Annotated[Token,Field(gt = 0,)])"),
        ('name: "str"', "name: str"),
        ("(Base, metaclass=Meta)", "(Base, metaclass=Meta,)"),
    ],
    "a.js": [
        ("password = 'x'", 'password="x"'),
        ("const local = 1;", "const local = 2; /* more */"),
        ("export default function login", "function login"),
        ("async user => { }", "async (user,) => user.out()"),
        ("stop: function (now) { }", "stop: now => now"),
    ],
    "a.ts": [
        ("opts: { deep: boolean; to?: number }", "opts: {\n  deep: boolean,\n  to?: number,\n}"),
        ("...rest: any[]): Promise<T> { }", "/* rest */ ...rest: any[]): Promise<T> { return 1; }"),
        ("\n  | 'low'\n  | \"high\"", " \"low\" | 'high'"),
        ("private token", "public token"),
        ("@Inject() name", "name"),
        ("readonly id: string", "id: string"),
        ("type Options = { deep: boolean }", "type Options = { deep: boolean; wide: number }"),
    ],
    "a.go": [
        ("(a *Auth)", "(auth *Auth)"),
        ("limit := 3", "limit := 4 /* more */"),
        ("rest ...int)", "\n\trest ...int,\n)"),
        ('`json:"name"`', '`json:"n"`'),
    ],
    "a.rs": [
        ("pub(crate) unsafe", "pub unsafe"),
        ("rows: impl Iterator<Item = u8>)", "rows: impl Iterator<Item=u8>, /* all */)"),
        ("#[derive(Debug)]", "#[derive(Debug, Clone)]"),
        ("where T: Clone,", "where T: Clone"),
    ],
    "A.java": [
        ("@Override public", "protected"),
        ("final String user", "@NotNull String user"),
        ("int local = 1;", "int local = 2;"),
        ("throws IOException { return null; }", "throws IOException\n  { /* none */ return null; }"),
        ("MAX = 3", "MAX = 4"),
    ],
    "a.c": [
        ("const char* password", "const char *password"),
        ("static inline int *login", "static int* login"),
        ("int local = 1;", ""),
        ("#define MAX 3", "#define MAX 4"),
        ("GREEN = 2", "GREEN = 3"),
    ],
    "a.cpp": [
        ("int tries = 3", "int tries=3"),
        ("const override = 0", "const"),
        ("const std::string& user", "const std::string &user"),
        (": pool_(pool) {}", ": pool_(pool), open_(true) { start(); }"),
        ("explicit Auth", "Auth"),
    ],
    "a.rb": [
        ("local = 1", "local = 2 # more"),
        (
            "(user, password = nil, *rest, key:, opt: 1, **more, &block)",
            " user, password = nil, *rest, key:, opt: 1, **more, &block",
        ),
        ("def open?; end", "def open?()\n      true\n    end"),
    ],
    "a.kt": [
        ("= {}): Result<T>", "={},\n    ): Result<T>"),
        ("val local = 1", "val local = 2"),
        ("@Entity\ndata class", "data class"),
        (": Base(name)", ": Base(name, 1)"),
        ("val open: Boolean get() = true", "val open: Boolean get() = false"),
    ],
    "a.cs": [
        ("private readonly", "public"),
        (": base(pool) { }", ": base(pool, 1) { Open(); }"),
        ("[Serializable] public", "internal"),
    ],
    "a.php": [
        ("private string $name", "public string $name"),
        ("#[Route] ", ""),
        ("$b = null): void { }", "$b=null): void { return; }"),
    ],
    "a.swift": [
        ("public final class", "class"),
        ("let local = 1", "let local = 2"),
    ],
    "a.scala": [
        ("sealed abstract class", "class"),
        ("Core[T](name)", "Core[T](name, 1)"),
        ("open: Boolean = true", "open: Boolean = false"),
    ],
    "a.tsx": [("{label}", "{label.trim()}"), ("<div>{title}</div>", "<p>{title}</p>")],
}

# And a change that somebody who relies on the named symbol must know.
NOTICED = {
    "a.py": [
        ('password: str = "x"', 'password: str = "y"', "Auth.login"),
        ('password: str = "x"', "password: str", "Auth.login"),
        ("async def login", "def login", "Auth.login"),
        ("user: User | None", "user: User", "Auth.login"),
        ("(Base, metaclass", "(Other, metaclass", "Auth"),
        ("MAX_TRIES: int", "MAX_TRIES: float", "MAX_TRIES"),
        ("tries: int = 3, **rest", "tries: int = 3", "Auth.__init__"),
    ],
    "a.js": [
        ("password = 'x'", "password = defaults.password", "login"),
        ("login(user, password = 'x')", "login(user)", "login"),
        ("async user =>", "user =>", "logout"),
        ("extends Base", "extends Other", "Auth"),
        ("static tries", "tries", "Auth.tries"),
    ],
    "a.ts": [
        ("login<T>(user: string", "login<T>(user: number", "login"),
        ("to?: number", "to: number", "login"),
        ("Promise<T> { }", "Promise<void> { }", "login"),
        ("'low'", "'none'", "Level"),
        ("limit: number", "limit: string", "Shop.Cart.limit"),
        ("implements Session", "implements Other", "Auth"),
    ],
    "a.tsx": [("{ label, onClick }", "{ label }", "Button")],
    "a.go": [
        ("(a *Auth) Login", "(a Auth) Login", "Auth.Login"),
        ("err error) {", "err *Error) {", "Auth.Login"),
        ("Get(id string)", "Get(id int)", "Store.Get"),
        ("Name, Mail string", "Name, Mail []byte", "User.Mail"),
    ],
    "a.rs": [
        ("async fn new", "fn new", "User.new"),
        ("user: &mut User", "user: &User", "auth.login"),
        ("Option<User>; }", "Result<User, E>; }", "Store.get"),
        ("id: T }", "id: u64 }", "User.id"),
    ],
    "A.java": [
        ("int[] marks, ", "", "Auth.login"),
        ("record Point(int x, int y)", "record Point(int x)", "Point"),
        ("String name;", "Name name;", "Auth.name"),
        ("User get(String id)", "User get(long id)", "Store.get"),
    ],
    "a.c": [
        ("int user,", "long user,", "login"),
        ("int logout(int, char *)", "int logout(int)", "logout"),
        ("SQUARE(x)", "SQUARE(x, y)", "SQUARE"),
        ("char *name", "char name[8]", "point.name"),
    ],
    "a.cpp": [
        ("int tries = 3", "int tries = 5", "shop.Auth.login"),
        ("logout(int code) const", "logout(int code)", "shop.Auth.logout"),
        ("public Base<T>", "public Other<T>", "shop.Auth"),
        ("T largest(T a, T b)", "T largest(T a)", "largest"),
        ("static int count", "static long count", "shop.Auth.count"),
    ],
    "a.rb": [
        ("password = nil", "password = 1", "Shop.Auth.login"),
        ("opt: 1", "opt: 2", "Shop.Auth.login"),
        ("key:, opt: 1", "key: 2, opt: 1", "Shop.Auth.login"),
        ("password = nil", "password", "Shop.Auth.login"),
        ("def self.make", "def make", "Shop.Auth.make"),
        ("Auth < Base", "Auth < Other", "Shop.Auth"),
    ],
    "a.kt": [
        ("= {}): Result<T>", "= { println(it) }): Result<T>", "User.login"),
        ("var age: Int = 3", "var age: Int = 4", "User"),
        ("suspend fun", "fun", "User.login"),
        ("fun get(id: String): User?", "fun get(id: String): User", "Store.get"),
        ("var age: Int = 3", "var age: Int", "User"),
        ("times: Int", "times: Long", "shout"),
    ],
    "a.cs": [
        ("int tries = 3", "int tries = 4", "Auth.Login"),
        ("Login(string user,", "Login(User user,", "Auth.Login"),
        ("async Task<T>", "Task<T>", "Auth.Login"),
        ("User Get(string id)", "User Get(int id)", "IStore.Get"),
    ],
    "a.php": [
        ("$tries = 3", "$tries = 4", "Auth.__construct"),
        ("static function login", "function login", "Auth.login"),
        ("): ?bool", "): bool", "Auth.login"),
        ("int &$a", "int $a", "helper"),
    ],
    "a.swift": [
        ('password: String = "a"', 'password: String = "b"', "Auth.login"),
        ("with password: String", "password: String", "Auth.login"),
        ("async throws", "async", "Auth.login"),
        ("get(id: Int)", "get(id: String)", "Store.get"),
    ],
    "a.scala": [
        ("tries: Int = 3", "tries: Int = 4", "Main.login"),
        ("(implicit pool: Pool)", "", "Main.login"),
        ("get(id: Int)", "get(id: Long)", "Store.get"),
        ("[T <: Base]", "[T]", "Auth"),
    ],
}


@pytest.mark.parametrize(
    ("path", "old", "new"), [(path, *change) for path, changes in UNNOTICED.items() for change in changes]
)
def test_layout_bodies_comments_and_who_may_see_it_are_no_change(path: str, old: str, new: str) -> None:
    text = SOURCES[path][0]
    assert old in text
    before, after = signatures(path, text), signatures(path, text.replace(old, new))
    assert {name: after.get(name) for name in SOURCES[path][1]} == {name: before[name] for name in SOURCES[path][1]}


@pytest.mark.parametrize(
    ("path", "old", "new", "name"), [(path, *change) for path, changes in NOTICED.items() for change in changes]
)
def test_what_changes_a_call_changes_the_signature(path: str, old: str, new: str, name: str) -> None:
    text = SOURCES[path][0]
    assert old in text
    before, after = of(path, text)[name], of(path, text.replace(old, new))[name]
    assert set(before.signature.split("\n")) != set(after.signature.split("\n"))
    if "\n" not in before.signature:
        assert not agrees(before.signature, after.signature)


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_removed_is_no_longer_defined(path: str) -> None:
    text, expected = SOURCES[path]
    for name in expected:
        word = name.rpartition(".")[2]
        assert name not in of(path, text.replace(word, f"not_{word.strip('~?=')}"))


SPACED = {
    "a.py": "def login(␣user: str,␣password: str = 'x'␣) ->␣bool:\n    pass\n".replace("->␣", "-> "),
    "a.js": "function login(␣user,␣password = 'x'␣)␣{ }",
    "a.ts": "function login(␣user␣:␣string,␣password = 'x'␣)␣:␣Promise<␣void␣>␣{ }",
    "a.go": "package a\nfunc login(␣user string,␣password string) error { return nil }",
    "a.rs": "fn login(␣user␣:␣&str,␣password: &str␣)␣->␣bool␣{ true }",
    "A.java": "class A {␣boolean␣login(␣String␣user,␣int[]␣marks␣)␣{ return true; } }",
    "a.c": "int␣login(␣int␣user,␣const␣char␣*password␣)␣{ return 1; }",
    "a.cpp": "int␣login(␣int␣user,␣const␣std::string␣&password␣)␣{ return 1; }",
    "a.rb": "def login(␣user,␣password = 1␣)\nend\n",
    "a.kt": "fun login(␣user␣:␣String,␣password: String␣): Boolean { return true }",
    "a.cs": "class A {␣bool␣Login(␣string␣user,␣int␣tries = 3␣)␣{ return true; } }",
    "a.php": "<?php function␣login(␣string␣$user,␣int␣$tries = 3␣)␣:␣bool␣{ }",
    "a.swift": "func login(␣_ user:␣String,␣with password:␣String␣) -> Bool { return true }",
    "a.scala": "object A {\n  def login(␣user:␣String,␣tries:␣Int␣): Boolean = true\n}",
}
white = st.sampled_from([" ", "\n", "\n\n   ", "\t", "  \n\t "])


@given(st.sampled_from(sorted(SPACED)), st.lists(white, min_size=12, max_size=12))
def test_white_space_never_matters(path: str, spaces: list[str]) -> None:
    first, *parts = SPACED[path].split("␣")
    text = first + "".join(space + part for space, part in zip(spaces, parts, strict=False))
    assert signatures(path, text) == signatures(path, SPACED[path].replace("␣", " "))
    assert any("ogin(" in signature for signature in signatures(path, text).values())


names = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: not __import__("keyword").iskeyword(name)
)
types = st.sampled_from(
    ["int", "str | None", "dict[str, int]", "a.B", "Callable[[int], str]", "Literal['a']", '"Late"']
)


@given(st.lists(st.tuples(names, st.none() | types, st.booleans()), unique_by=lambda item: item[0], max_size=5), names)
def test_a_python_signature_is_the_same_in_a_broken_file(
    parameters: list[tuple[str, str | None, bool]], name: str
) -> None:
    given_ = [f"{item}{f': {kind}' if kind else ''}{' = 1' if default else ''}" for item, kind, default in parameters]
    source = f"def {name}(*, {', '.join(given_)}) -> int:  # {name}\n    return 1\n" if given_ else f"def {name}(): ..."
    whole, broken = of("a.py", source), of("a.py", f"{source}\n\n)\n")
    assert broken.broken
    assert not whole.broken
    assert whole[name].signature == broken[name].signature != ""


@given(
    st.sampled_from(sorted(SOURCES)),
    st.text(alphabet="(){}[]<>:;,.=*&'\"`/#\\ \n\tabdefclass 0é가🧠\x00\ud800", max_size=60),
)
def test_any_text_gives_symbols_or_none(path: str, text: str) -> None:
    found = symbols_of(path, text)
    assert found is None or all(name == symbol.name for name, symbol in found.items())


@settings(max_examples=60)
@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 2_000), st.integers(0, 200))
def test_a_source_with_a_hole_never_fails(path: str, start: int, length: int) -> None:
    text = SOURCES[path][0]
    assert symbols_of(path, text[:start] + text[start + length :]) is not None


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        ("a.py", "def good(a): ...\n\nclass Half(\n", "good"),
        ("a.ts", "function good(a: string) { }\nclass Half { m( {\n", "good"),
        ("a.go", "package a\nfunc good(a int) {}\nfunc half(a int {\n", "good"),
        ("a.rs", "fn good(a: u8) {}\nfn half(a: u8 -> {\n", "good"),
        ("A.java", "class A { void good(int a) {} void half(int {\n", "good"),
        ("a.rb", "def good(a)\nend\ndef half(a\n", "good"),
    ],
)
def test_what_stands_before_an_error_is_still_found(path: str, text: str, kept: str) -> None:
    found = of(path, text)
    assert found.broken
    assert find(found, kept)


@pytest.mark.parametrize("opening", ["(", "{", "[", "a<", "if x:\n ", "class A {", "f(a=[", "x = not "])
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.cpp", "a.kt"])
def test_deep_nesting_is_survived(path: str, opening: str) -> None:
    found = symbols_of(path, f"{opening * 3_000}\n")
    assert found is None or found.broken or not found


def test_a_type_that_goes_very_deep_is_cut() -> None:
    depth = 300
    found = of("a.ts", f"function login(user: {'A<' * depth}B{'>' * depth}) {{ }}")
    assert 0 < len(found["login"].signature) < depth


def test_warnings_of_the_parsed_source_are_not_ours() -> None:
    source = 'PATTERN = "\\d"\ndef login(user: Literal["\\d"]): ...\n'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        with ThreadPoolExecutor(4) as threads:
            assert all(threads.map(lambda _: of("a.py", source)["PATTERN"].value == r"'\\d'", range(100)))
        assert warnings.filters == before


def test_a_text_that_is_too_long_or_in_no_language_is_not_parsed() -> None:
    assert symbols_of("a.py", "x = 1\n" * (SOURCE_CHARS_MAX // 6 + 1)) is None
    assert symbols_of("a.txt", "def login(): ...") is None


def test_a_definition_ends_on_its_own_last_line() -> None:
    macro, function = of("a.c", C)["MAX"], of("a.c", "int f(int a) {\n  return a;\n}\n")["f"]
    assert (macro.first, macro.last) == (2, 2)
    assert (function.first, function.last) == (1, 3)


def test_a_byte_order_mark_is_no_error() -> None:
    assert list(of("a.py", "\ufeffimport os\n")) == ["os"]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("src/a.py", "python"),
        ("a.pyi", "python"),
        ("A.TS", "typescript"),
        ("a.d.ts", "typescript"),
        ("a.tsx", "tsx"),
        ("a.jsx", "javascript"),
        ("a.h", "cpp"),
        ("Makefile", None),
        (".py", None),
        ("a.py/b", None),
        ("a.", None),
        ("", None),
    ],
)
def test_the_language_is_told_by_the_ending(path: str, language: str | None) -> None:
    assert language_of(path) == language


AUTH = of(
    "a.py",
    "class Auth:\n  def login(self): ...\n  def save(self): ...\n"
    "class User:\n  def save(self): ...\n  def Save(self): ...\ndef start(): ...\ndef login(): ...\n",
)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Auth.login", ["Auth.login"]),
        ("Auth::login", ["Auth.login"]),
        ("Auth#login", ["Auth.login"]),
        ("Auth->login", ["Auth.login"]),
        ("Auth.login()", ["Auth.login"]),
        ("Auth.login(self, user)", ["Auth.login"]),
        ("(*User).Save", ["User.Save"]),
        ("(User).Save", ["User.Save"]),
        ("User<T>.Save", ["User.Save"]),
        ("`start`", ["start"]),
        ("Save", ["User.Save"]),
        ("save", ["Auth.save", "User.save"]),
        ("login", ["login"]),
        ("ogin", []),
        ("Admin.login", []),
        ("", []),
        ("...", []),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, found: list[str]) -> None:
    assert [symbol.name for symbol in find(AUTH, name)] == found


@pytest.mark.parametrize(
    ("path", "text", "signature"),
    [
        ("a.ts", "function f(a: number = 3, b = { c: 1 }) {}", "f(a: number=3, b={ c: 1 })"),
        ("a.py", f"def f(a={list(range(40))}): ...", "f(a=…)"),
        ("a.py", "def f(a=1_000, b=lambda x : x): ...", "f(a=1000, b=lambda x: x)"),
    ],
)
def test_a_default_value_is_part_of_a_signature_unless_it_is_long(path: str, text: str, signature: str) -> None:
    assert of(path, text)["f"].signature.removeprefix("function ") == signature


def test_what_is_only_imported_yields_to_what_is_defined() -> None:
    found = of("a.py", "from x import login\nclass Auth:\n  def login(self): ...\n")
    assert [symbol.name for symbol in find(found, "login")] == ["Auth.login"]
    assert [symbol.kind for symbol in find(of("a.py", "from x import login"), "login")] == ["import"]


@pytest.mark.parametrize(
    ("cited", "current", "same"),
    [
        ("f(b)\nf(c)", "f(a)\nf(b)", True),
        ("f(c)", "f(a)\nf(b)", False),
        ("", "f(a)\nf(b)", True),
        ("f(c)", "", True),
        ("3", "…", False),
        ("f(a=…, b: int=…)", "f(a=(1, 2), b: int='x, y')", True),
        ("f(a=…)", "f(a=3, b)", False),
        ("f(a=3)", "f(a=…)", False),
        ("f(a: …)", "f(a: 1)", True),
    ],
)
def test_one_of_several_signatures_or_values_is_enough(cited: str, current: str, same: bool) -> None:
    assert agrees(cited, current) is same


@given(st.text(max_size=40) | st.sampled_from(sorted(AUTH)))
def test_any_name_can_be_looked_for(name: str) -> None:
    found = {symbol.name for symbol in find(AUTH, name)}
    assert found == {name} if name in AUTH else found <= set(AUTH)
