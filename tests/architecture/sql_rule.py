"""Which SQL text a call is given, and whether it was written by an author or put together at run time."""

import ast
from collections.abc import Iterator

from tests.architecture.sources import Source, callee, dotted

#: These take SQL text, so what they are given must be seen to be written in the source.
TAKES_TEXT = {"exec_driver_sql", "executescript", "literal_column", "DDL"}
#: These also take statement objects, which bind their values; only text put together on the spot is refused.
TAKES_STATEMENT = {"execute", "executemany", "scalar", "scalars"}
TEXT_MODULES = ("sqlalchemy", "sqlmodel", "sa")
ALEMBIC_OPERATIONS = "op.execute"

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def composed_sql(file: Source) -> list[str]:
    """Places where SQL text is built from pieces, or comes from elsewhere, instead of being written down."""
    texts = {alias.asname or alias.name for alias in _text_imports(file.tree)}
    return [
        file.at(call, ast.unparse(call)[:80])
        for scopes, call in _calls(file.tree, ())
        if call.args and _is_refused(call, call.args[0], texts, scopes)
    ]


def _is_refused(call: ast.Call, sql: ast.expr, texts: set[str], scopes: tuple[Scope, ...]) -> bool:
    name, path = callee(call), dotted(call.func)
    owner = path.rpartition(".")[0]
    is_text = path in texts or (name == "text" and owner in TEXT_MODULES)
    if is_text or name in TAKES_TEXT or path == ALEMBIC_OPERATIONS:
        return not _is_written(sql, scopes) and not _is_statement(sql)
    return name in TAKES_STATEMENT and _is_composed(sql, scopes)


def _is_written(sql: ast.expr, scopes: tuple[Scope, ...]) -> bool:
    """Whether the text stands in the source: a literal, a constant, or a name bound to nothing else."""
    parts: list[ast.expr] = []
    match sql:
        case ast.Constant(value=value):
            return isinstance(value, str)
        case ast.Attribute(attr=name):
            return name.isupper()
        case ast.Name(id=name):
            return name.isupper() or _is_bound_to_written(name, scopes)
        case ast.IfExp(body=left, orelse=right) | ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [left, right]
        case ast.JoinedStr(values=elements) | ast.Tuple(elts=elements) | ast.List(elts=elements):
            parts = elements
        case ast.FormattedValue(value=ast.Name(id=name)):
            return name.isupper()
        case ast.Subscript(value=table):
            parts = [table]
    return bool(parts) and all(_is_written(part, scopes) for part in parts)


def _is_bound_to_written(name: str, scopes: tuple[Scope, ...]) -> bool:
    for depth in range(len(scopes), 0, -1):
        if bound := list(_bindings(scopes[depth - 1], name)):
            return depth == 1 or all(value is not None and _is_written(value, scopes[:depth]) for value in bound)
    return False


def _is_composed(sql: ast.expr, scopes: tuple[Scope, ...]) -> bool:
    """Whether the expression, or what its name was bound to in this function, is a string put together."""
    match sql:
        case ast.JoinedStr():
            return not _is_written(sql, scopes)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            is_text = any(_is_string(side) or _is_composed(side, scopes) for side in (left, right))
            return is_text and not _is_written(sql, scopes)
        case ast.Call(func=ast.Attribute(value=receiver, attr="format" | "join" | "replace")):
            return _is_string(receiver) or isinstance(receiver, ast.Name)
        case ast.IfExp(body=body, orelse=orelse):
            return _is_composed(body, scopes) or _is_composed(orelse, scopes)
        case ast.Name(id=name) if len(scopes) > 1:
            return any(value is not None and _is_composed(value, scopes[:1]) for value in _bindings(scopes[-1], name))
    return False


def _is_statement(sql: ast.expr) -> bool:
    """Whether it is a call that makes a statement object; what text it holds is judged where it is made."""
    return isinstance(sql, ast.Call) and callee(sql) not in {"format", "join", "replace", "strip", "str"}


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _bindings(scope: Scope, name: str) -> Iterator[ast.expr | None]:
    """What a name is bound to in one scope; None for what comes from outside, as an argument does."""
    arguments = [] if isinstance(scope, ast.Module) else [node for node in ast.walk(scope.args)]
    if any(isinstance(argument, ast.arg) and argument.arg == name for argument in arguments):
        yield None
    for node in _own_nodes(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_names(target) == name for target in targets):
                yield value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _names(target) == name:
                yield value
            case ast.AugAssign(target=target) if _names(target) == name:
                yield None
            case ast.NamedExpr(target=target, value=value) if _names(target) == name:
                yield value
            case ast.For(target=target, iter=value) if _names(target) == name:
                yield value
            case ast.ImportFrom(names=names) if any((alias.asname or alias.name) == name for alias in names):
                yield None


def _own_nodes(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions inside it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Scope):
            waiting.extend(ast.iter_child_nodes(node))


def _names(target: ast.expr) -> str:
    return target.id if isinstance(target, ast.Name) else ""


def _calls(node: ast.AST, scopes: tuple[Scope, ...]) -> Iterator[tuple[tuple[Scope, ...], ast.Call]]:
    if isinstance(node, Scope):
        scopes = (*scopes, node)
    if isinstance(node, ast.Call):
        yield scopes, node
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, scopes)


def _text_imports(tree: ast.Module) -> Iterator[ast.alias]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in TEXT_MODULES:
            yield from (alias for alias in node.names if alias.name == "text")
