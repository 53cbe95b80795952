#!/usr/bin/python3
"""A proposer for `attest evolve --proposer`, in few lines: the champion with one constant changed.

It reads the document that attest writes to its standard input, picks a constant of the space and a value that no candidate had, and
prints the source. docs/evolve.md has the whole document.
"""
import json
import re
import sys

document = json.load(sys.stdin)
source = document["champion"]["source"]
tried = [document["champion"].get("settings")] + [past.get("settings") for past in document.get("insights", [])]

for knob in document.get("space", []):
    for value in knob["values"]:
        settings = dict(document["champion"].get("settings", {}), **{knob["name"]: value})
        if settings in tried:
            continue
        # NAME = value in an enum, or #define NAME value.
        pattern = rf"(\b{knob['name']}\s*=\s*|#\s*define\s+{knob['name']}\s+)\w+"
        head, comment_end, body = source.partition("*/")
        sys.stdout.write(head + comment_end + re.sub(pattern, rf"\g<1>{value}", body, count=1))
        sys.exit()
sys.exit("every neighbour of the champion was tried")
