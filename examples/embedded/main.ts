// Uses a sandbox in a program, without a node, and asserts each output.
import assert from "node:assert/strict";
import { createSandbox } from "@sandpiper/node";

await using sandbox = await createSandbox({ memoryMib: 512 });

const result = await sandbox.exec("python3 -c 'print(6*7)'");
console.log(result.stdout, result.exitCode);
assert.deepEqual([result.stdout, result.exitCode], ["42\n", 0]);

await sandbox.writeFile("/tmp/total.py", "import sys; print(sum(map(int, sys.stdin)))");
const total = await sandbox.exec(["python3", "/tmp/total.py"], { stdin: "1\n2\n3\n", timeoutMs: 5_000 });
console.log(total.stdout);
assert.equal(total.stdout, "6\n");

const code = await sandbox.executeCode("javascript", "console.log([1, 2, 3].map((n) => n * n))");
console.log(code.stdout);
assert.equal(code.stdout, "[ 1, 4, 9 ]\n");
