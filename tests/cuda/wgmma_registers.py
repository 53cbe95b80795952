#!/usr/bin/env python3
"""Registers that a product under way still reads must not be written: wgmma_registers.py IMAGE ... follows every path through the machine
code from each wgmma whose first matrix is in registers to the next wait for all products. The compiler does not keep that rule by itself
(PTX calls breaking it undefined), results are often right all the same, and no sanitizer sees it.

Prints a line for each image, and ends with 1 if there is a write. A file that ends in .sass is a listing, as cuobjdump -sass prints it."""
import re
import subprocess
import sys

INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,6})\*/\s+(.*?);", re.M)
REGISTER = re.compile(r"R(\d+)$")
READ_BY_PRODUCT = 4  # registers of a fragment
# These have no result in a register, though their first operand may be one.
WITHOUT_RESULT = ("ST", "RED", "BRA", "BRX", "EXIT", "BAR", "BSSY", "BSYNC", "SYNCS.ARRIVE", "WARP", "NOP", "UTMA", "FENCE", "MEMBAR", "CCTL")


def listing(path):
    if path.endswith(".sass"):
        with open(path, encoding="utf-8") as f:
            return f.read()
    return subprocess.run(["cuobjdump", "-sass", path], capture_output=True, text=True, check=True).stdout


def width(operation):
    return 4 if ".128" in operation else 2 if ".64" in operation or ".WIDE" in operation else 1


def result(operation, operands):
    """The registers that an instruction writes: its first operand, or the second where the first is a predicate."""
    if operation.startswith(WITHOUT_RESULT):
        return ()
    first = operands[1:] if re.match(r"U?P[T\d]$", operands[0]) else operands
    found = REGISTER.match(first[0]) if first else None
    return range(int(found[1]), int(found[1]) + width(operation)) if found else ()


def code(text):
    """[(address, operation, operands, instruction)], and for each the numbers of those that may come next."""
    lines = []
    for address, instruction in INSTRUCTION.findall(text):
        plain = re.sub(r"^@!?U?P\w+\s+", "", instruction)
        operation, _, rest = plain.partition(" ")
        lines.append((int(address, 16), operation, [operand.strip() for operand in rest.split(",")], instruction.strip(), plain != instruction))
    number = {line[0]: n for n, line in enumerate(lines)}
    after = []
    for n, (_, operation, operands, _, conditional) in enumerate(lines):
        following = {n + 1} if n + 1 < len(lines) else set()
        target = next((int(operand.split()[-1], 16) for operand in operands if re.match(r"(U?P\w+ )?0x[0-9a-f]+$", operand)), None)
        if operation.startswith(("BRA", "CALL")) and target in number:
            after.append({number[target]} | (following if conditional or operation.startswith("CALL") or len(operands) > 1 else set()))
        elif operation.startswith(("EXIT", "RET")) and not conditional: # what comes behind a call follows the call
            after.append(set())
        else:
            after.append(following)
    return lines, after


def violations(text):
    """Products whose first matrix is in registers, and what is written too early: [(address, instruction)]."""
    lines, after = code(text)
    read = [frozenset() for _ in lines]  # by products that may be under way when an instruction is reached
    seen = [False] * len(lines)
    waiting, products, found = [0] if lines else [], set(), {}
    while waiting:
        n = waiting.pop()
        seen[n] = True
        address, operation, operands, instruction, _ = lines[n]
        now = read[n]
        matrix = REGISTER.match(operands[1]) if operation.startswith("HGMMA") and len(operands) > 1 else None
        if matrix:
            products.add(n)
            now = now | frozenset(range(int(matrix[1]), int(matrix[1]) + READ_BY_PRODUCT))
        elif operation.startswith("WARPGROUP.DEPBAR"):
            now = frozenset() if "0x0" in operands else now
        elif not operation.startswith("HGMMA") and now.intersection(result(operation, operands)):
            found[address] = instruction
        for m in after[n]:
            if not seen[m] or not now <= read[m]:
                read[m] = read[m] | now
                waiting.append(m)
    return len(products), sorted(found.items())


def main():
    bad = 0
    for path in sys.argv[1:]:
        products, found = violations(listing(path))
        print(f"{path}: {products} products from registers, {len(found)} writes too early" +
              "".join(f"; {address:#x} {instruction}" for address, instruction in found[:2]))
        bad += bool(found)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
