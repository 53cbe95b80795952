#!/bin/sh
# Waiting threads sleep: other tests may want the cores.
export OMP_WAIT_POLICY=passive
exec "${BUILD:-build}/tests/test_random"
