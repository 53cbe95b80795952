#!/bin/sh
# A language model as a proposer: attest evolve PROBLEM --kernel my_kernel.c --proposer examples/proposers/language_model.sh
#
# $MODEL is a command that reads a prompt on standard input and prints an answer, such as the command-line client of any model. The
# answer may have the source between lines of ```; attest takes what is between them. What the model gets wrong costs one turn, and
# it is told in the next one why.
set -e
: "${MODEL:?set MODEL to a command that reads a prompt and prints an answer}"
python3 -c '
import json, sys
document = json.load(sys.stdin)
task, champion = document["task"], document["champion"]
print("You improve an attention kernel in", task["language"] + ". Goal:", task["goal"])
print("Rules:", *task["rules"], sep="\n- ")
print("It is timed on:", *task["problems"], sep="\n- ")
print("The interface that it implements:\n" + task.get("interface", ""))
for past in document.get("insights", []):
    ratio = past.get("screen", {}).get("ratio")
    print("Candidate", past["number"], past["state"], "at", past.get("stage", ""), past.get("sentence", ""), json.dumps(past.get("settings")),
          "diagnosis: " + json.dumps(past["diagnosis"]) if "diagnosis" in past else "", f"screened at {ratio:.3f} x" if ratio else "")
for elite in document.get("elites", [])[:2]:
    print("A good candidate, screened at %.3f x:\n%s" % (elite["screened_ratio_to_start"], elite["source"]))
print("The reigning champion is %.3f x as fast as the start. Its source:\n%s" % (champion["ratio_to_start"], champion["source"]))
print("Answer with one complete source file between ``` and ```, and nothing else.")
' | sh -c "$MODEL"
