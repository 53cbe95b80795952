#!/bin/sh
exec "${BUILD:-build}/tests/tool/test_other_inputs"
