import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "@sandpiper/protocol/error";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Guest } from "../guest/guest.ts";
import { startShell } from "./start-shell.ts";

const pty = { rows: 24, cols: 80 };

/** A sandbox that has only these programs; records what it starts. */
function guestWith(...programs: string[]) {
  const started: (readonly string[])[] = [];
  const start = async (argv: readonly string[]) => {
    if (!programs.includes(argv[0] ?? "")) throw new SandboxError("no_such_program", { message: "" });
    started.push(argv);
  };
  return { guest: { id: "s", start } as unknown as Guest, started };
}

describe("the shell of a sandbox", () => {
  it.each([
    ["the command that the user names", "python3", ["python3"]],
    ["bash in a sandbox without sh", "/bin/bash", []],
  ])("is %s", async (_, program, argv) => {
    const { guest, started } = guestWith(program);
    await startShell(guest, { argv, options: {} }, pty);
    expect(started).toEqual([[program]]);
  });

  it("fails with a clear message in a sandbox without any shell", async () => {
    const { guest } = guestWith();
    await expect(startShell(guest, { argv: [], options: {} }, pty)).rejects.toThrow(/has no shell/);
  });
});

describe("the choice of a shell inside", () => {
  let directory: string;
  let own: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "sandpiper-shell-"));
    own = join(directory, "my shell");
    // It reads what it is given: one that ends before would break the pipe.
    writeFileSync(own, "#!/bin/sh\ncat > /dev/null\necho mine\n");
    chmodSync(own, 0o755);
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const chosen = async (shell: string) => {
    const { guest, started } = guestWith("/bin/sh");
    await startShell(guest, { argv: [], options: {} }, pty);
    const [[program = "", ...args] = []] = started;
    const input = "echo $BASH; exit\n";
    return execFileSync(program, args, { env: { PATH: "/usr/bin:/bin", SHELL: shell }, input })
      .toString()
      .trim();
  };

  it("prefers $SHELL", async () => {
    expect(await chosen(own)).toBe("mine");
  });

  it.each(["", "/bin/sh", "/usr/sbin/nologin", "/no/such/shell"])("is bash when $SHELL is %o", async (shell) => {
    expect(await chosen(shell)).toBe("/bin/bash");
  });
});
