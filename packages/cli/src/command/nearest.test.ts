import { describe, expect, it } from "vitest";
import { nearest } from "./nearest.ts";

const verbs = ["run", "shell", "doctor", "completion", "help", "version"];

describe("the nearest word", () => {
  it.each([
    ["rnu", "run"],
    ["rn", "run"],
    ["shel", "shell"],
    ["docter", "doctor"],
    ["completon", "completion"],
    ["ver", "version"],
  ])("to %s is %s", (word, expected) => {
    expect(nearest(word, verbs)).toBe(expected);
  });

  it.each(["", "x", "kubernetes", "zzz"])("to %j is none", (word) => {
    expect(nearest(word, verbs)).toBeUndefined();
  });
});
