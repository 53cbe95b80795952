"""How a benchmark's results are written to a JSON file."""

import json
import os
import re


def rounded(value):
    """Six digits are more than a timing has, and keep the file readable."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    return [rounded(x) for x in value] if isinstance(value, list) else value


def document_write(document, path):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        # One line for each list of samples keeps the file short enough to be read.
        body = json.dumps(rounded(document), indent=1, sort_keys=True)
        f.write(re.sub(r"\[\s+([^\[\]{}\"]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", body) + "\n")
