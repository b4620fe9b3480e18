import { SandboxError } from "@sandpiper/protocol/error";
import { describe, expect, it } from "vitest";
import { reportError } from "./report-error.ts";

function report(thrown: unknown) {
  let text = "";
  const write = (line: string) => {
    text += line;
  };
  const exitCode = reportError(thrown, { endsLikeItsCommand: true, write });
  return { text, exitCode };
}

describe("an error", () => {
  it("is printed with its hint", () => {
    const error = new SandboxError("no_node", { message: "no answer", hint: "try again" });
    expect(report(error)).toEqual({ text: "sandpiper: no answer\n  try again\n", exitCode: 125 });
  });

  it("without a hint is one line", () => {
    const error = SandboxError.fromFields({ code: "gone", reason: "instance_crashed", message: "it is gone" });
    expect(report(error).text).toBe("sandpiper: it is gone\n");
  });

  it("about a key names the variables that set the key", () => {
    const error = new SandboxError("no_credential", { message: "no", hint: "send a header" });
    expect(report(error).text).toMatch(/^sandpiper: no\n {2}set SANDPIPER_API_KEY .*\n$/);
  });

  it("inside Sandpiper itself is printed with its stack", () => {
    const { text, exitCode } = report(new TypeError("undefined is not a function"));
    expect(exitCode).toBe(125);
    expect(text).toMatch(/^sandpiper: undefined is not a function\n.*report-error\.test\.ts/s);
  });
});
