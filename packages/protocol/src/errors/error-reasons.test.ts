import { describe, expect, it } from "vitest";
import { isErrorCode } from "./error-codes.ts";
import type { ErrorReasonEntry } from "./error-reason.ts";
import { errorReasons, errorTopics, isErrorReason } from "./error-reasons.ts";

/** One of tests, and one whose message has the next step. */
const WITHOUT_HINT = ["mock_fault", "no_node"];
const entries: [string, ErrorReasonEntry][] = Object.entries(errorReasons);

describe("the table of error reasons", () => {
  it.each(entries)("gives %s a name in snake_case, a code, a sentence and a hint", (reason, entry) => {
    expect(reason).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
    expect(isErrorCode(entry.code)).toBe(true);
    expect(entry.meaning).toMatch(/^\S.*\.$/);
    expect(entry.meaning.split(" ").length).toBeLessThanOrEqual(25);
    if (entry.code !== "canceled" && !WITHOUT_HINT.includes(reason)) expect(entry.hint).toMatch(/^\S.*[^.\s]$/);
  });

  it("lists each reason under one topic", () => {
    const listed = Object.values(errorTopics).flatMap((topic) => Object.keys(topic));
    expect(listed.sort()).toEqual(Object.keys(errorReasons).sort());
    expect(new Set(listed).size).toBe(listed.length);
  });

  it("knows its own names and no name that objects inherit", () => {
    expect(isErrorReason("no_such_sandbox")).toBe(true);
    expect(isErrorReason("toString")).toBe(false);
    expect(isErrorReason(undefined)).toBe(false);
  });
});
