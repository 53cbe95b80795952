#!/usr/bin/python3
"""A proposer for tests, which does what a folder says: for candidate N it prints the file N.c, or runs the script N.sh.

    proposer.py FOLDER < document > source

What it was told is left in FOLDER/N.json.
"""
import json
import os
import subprocess
import sys

folder = sys.argv[1]
document = json.load(sys.stdin)
number = document["task"]["candidate"]
with open(f"{folder}/{number}.json", "w") as told:
    json.dump(document, told)
if os.path.exists(f"{folder}/{number}.sh"):
    sys.exit(subprocess.call(["sh", f"{folder}/{number}.sh"]))
with open(f"{folder}/{number}.c") as source:
    sys.stdout.write(source.read())
