"""The page's template and the names that it may use."""

from pathlib import Path
from string import Template

NAMES = {"shop", "stage", "products", "cart", "version", "pod"}
TEMPLATE = Template((Path(__file__).parent / "page.html").read_text())


def render(**values):
    return TEMPLATE.substitute(values)
