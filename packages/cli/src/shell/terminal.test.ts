import { describe, expect, it } from "vitest";
import { terminalEnv } from "./terminal.ts";

const caller = { TERM: "tmux-256color", COLORTERM: "truecolor", HOME: "/home/caller" };

describe("the environment of a terminal inside", () => {
  it("names the user's terminal when this machine's programs run", () => {
    expect(terminalEnv(undefined, caller)).toEqual({ TERM: "tmux-256color", COLORTERM: "truecolor" });
  });

  it("does not name it in another root filesystem, which may lack its description", () => {
    expect(terminalEnv("/srv/alpine", caller)).toEqual({ COLORTERM: "truecolor" });
  });

  it("sets nothing that the user's environment does not", () => {
    expect(terminalEnv(undefined, {})).toEqual({});
  });
});
