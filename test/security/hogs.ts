import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Sandbox } from "@sandpiper/core";
import { expect } from "vitest";

/** A program that uses memory until it is killed. */
export interface Hog {
  readonly command: string;
  readonly result: object;
  prepare?(sandbox: Sandbox): Promise<unknown>;
}

const killed = { exitCode: 137, outOfMemory: true };
const python = (code: string) => `python3 -c '${code}'`;

export const hogs: Readonly<Record<string, Hog>> = {
  python: { command: python('x = []\nwhile True: x.append(b"y" * (1 << 20))'), result: killed },
  "python, one object": { command: python('x = b"y" * (3 << 30)'), result: killed },
  memfd: {
    command: python('import os\nf = os.memfd_create("x")\nwhile True: os.write(f, b"y" * (1 << 20))'),
    result: killed,
  },
  shm: {
    command: python('f = open("/dev/shm/x", "wb")\nwhile True: f.write(b"y" * (1 << 20))'),
    result: { exitCode: 1, outOfMemory: false, stderr: expect.stringContaining("No space left on device") },
  },
  tail: { command: "tail /dev/zero", result: killed },
  node: { command: "node -e 'const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1))'", result: killed },
  "node, heap": {
    command: "node --max-old-space-size=4000 -e 'const x = []; for (;;) x.push({ a: [1, 2], b: String(x.length) })'",
    result: killed,
  },
  c: compiled(
    "hog.c",
    "#include <stdlib.h>\n#include <string.h>\nint main(void) { for (;;) memset(malloc(1 << 20), 1, 1 << 20); }",
    (source, program) => ["gcc", "-O1", "-static", "-o", program, source],
  ),
  go: compiled(
    "hog.go",
    "package main\nvar keep [][]byte\nfunc main() { for { b := make([]byte, 1<<20); for i := range b { b[i] = 1 }; keep = append(keep, b) } }",
    (source, program) => ["go", "build", "-o", program, source],
  ),
  java: {
    command: "java -XX:MaxRAM=8g -Xmx4g /tmp/Hog.java",
    result: killed,
    prepare: (sandbox) =>
      sandbox.files.write(
        "/tmp/Hog.java",
        "class Hog { public static void main(String[] a) { var x = new java.util.ArrayList<byte[]>(); for (;;) x.add(new byte[1 << 20]); } }",
      ),
  },
};

/** Compiles on the host, and copies the static program into the sandbox. */
function compiled(name: string, source: string, commandFor: (source: string, program: string) => string[]): Hog {
  const prepare = async (sandbox: Sandbox) => {
    const directory = mkdtempSync(join(tmpdir(), "sp-hog-"));
    try {
      const [file, program] = [join(directory, name), join(directory, "hog")];
      writeFileSync(file, source);
      const [compiler = "", ...words] = commandFor(file, program);
      execFileSync(compiler, words, { env: { ...process.env, CGO_ENABLED: "0" }, stdio: "inherit" });
      await sandbox.files.write("/tmp/hog", readFileSync(program), { mode: 0o755 });
    } finally {
      rmSync(directory, { recursive: true });
    }
  };
  return { command: "/tmp/hog", result: killed, prepare };
}
