"""Prints what has grown: `python -m tests.house.sizes`. A report, never a failure."""

import ast

from tests.house.source import Module, modules

MODULE_LINES = 300
FUNCTION_LINES = 30
PUBLIC_NAMES = 7


def long_functions(module: Module) -> list[str]:
    return [
        f"{module.name}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES
    ]


def public_names(module: Module) -> list[str]:
    return [
        node.name
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    ]


def report() -> list[str]:
    lines: list[str] = []
    for module in modules():
        if module.line_count > MODULE_LINES:
            lines.append(f"{module.name}: {module.line_count} lines")
        if len(public_names(module)) > PUBLIC_NAMES and module.stem not in (
            "models",
            "event_types",
        ):
            lines.append(f"{module.name}: {len(public_names(module))} public names")
        lines += long_functions(module)
    return lines


if __name__ == "__main__":
    print("\n".join(["Has it one subject each? If not, split it by action:", *report()]))
