import { describe, expect, it } from "vitest";
import { terminalEnv } from "./terminal-env.ts";

const caller = { TERM: "tmux-256color", COLORTERM: "truecolor", HOME: "/home/somebody" };

describe("the environment of a terminal inside", () => {
  it("names the user's own terminal where this machine's programs run", () => {
    expect(terminalEnv(undefined, caller)).toEqual({ TERM: "tmux-256color", COLORTERM: "truecolor" });
  });

  it("does not name it in another root filesystem, which may not know it", () => {
    expect(terminalEnv("/srv/alpine", caller)).toEqual({ COLORTERM: "truecolor" });
  });

  it("names nothing that the user's terminal does not", () => {
    expect(terminalEnv(undefined, {})).toEqual({});
  });
});
