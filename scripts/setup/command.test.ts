import { describe, expect, it } from "vitest";
import { type Command, runCommand } from "./command.mjs";
import { SetupError } from "./setup-error.mjs";

describe("a command of set-up", () => {
  it("reports, when it fails, what ran, how it ended, both ends of its output and what to do", async () => {
    const error = await run({ argv: ["sh", "-c", "seq 1000; echo broken >&2; exit 3"] }).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SetupError);
    const lines = error.message.split("\n");
    expect(lines[0]).toBe("Counting: `sh -c seq 1000; echo broken >&2; exit 3` exited with 3");
    expect(lines[1]).toBe("  │ 1");
    expect(lines).toContain("  │ ⋮");
    expect(lines).toContain("  │ broken");
    expect(lines.at(-1)).toBe("Try again.");
    expect(lines.length).toBeLessThan(50);
  });

  it("reports that it could not be started", async () => {
    await expect(run({ argv: ["no-such-program"] })).rejects.toThrow("`no-such-program` could not be started");
  });

  it("reports the signal that ended it", async () => {
    await expect(run({ argv: ["sh", "-c", "kill -9 $$"] })).rejects.toThrow("was ended by SIGKILL");
  });

  it("runs with its environment, and describes every line of its output", async () => {
    const lines: string[] = [];
    const describeLine = (line: string) => void lines.push(line);
    await run({ argv: ["sh", "-c", 'echo "$WORD"; echo b'], env: { WORD: "a" }, describe: describeLine });
    expect(lines).toEqual(["a", "b"]);
  });
});

function run(command: Pick<Command, "argv"> & Partial<Command>): Promise<void> {
  return runCommand({ title: "Counting", cwd: "/", hint: "Try again.", ...command });
}
