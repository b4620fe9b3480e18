import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { parseEngineEvent } from "./engine-event.ts";

const id = createSandboxId();
const line = (Action: string, attributes: Record<string, string> = {}) =>
  JSON.stringify({ Action, Actor: { Attributes: { "sandpiper.sandbox": id, ...attributes } }, time: 1_700_000_000 });

describe("an event of the engine", () => {
  it("names the sandbox, the action and the exit code", () => {
    const at = new Date(1_700_000_000_000);
    expect(parseEngineEvent(line("start"))).toEqual({ id, action: "start", exitCode: undefined, at });
    expect(parseEngineEvent(line("die", { exitCode: "137" }))).toEqual({ id, action: "die", exitCode: 137, at });
  });

  it("is also parsed with Podman's action names", () => {
    expect(parseEngineEvent(line("died", { containerExitCode: "1" }))).toMatchObject({ action: "die", exitCode: 1 });
    expect(parseEngineEvent(line("remove"))).toMatchObject({ action: "destroy" });
  });

  it("about anything else is ignored", () => {
    expect(parseEngineEvent(line("exec_start: sh"))).toBeUndefined();
    expect(parseEngineEvent(line("die", { "sandpiper.sandbox": "../../etc" }))).toBeUndefined();
    expect(parseEngineEvent(JSON.stringify({ Action: "die" }))).toBeUndefined();
  });
});
