import { describe, expect, it } from "vitest";
import { type ErrorCodeEntry, errorCodes, isErrorCode } from "./error-codes.ts";

const entries: [string, ErrorCodeEntry][] = Object.entries(errorCodes);

describe("the error codes", () => {
  it("are this closed set", () => {
    expect(Object.keys(errorCodes)).toEqual([
      "invalid_argument",
      "unauthenticated",
      "permission_denied",
      "not_found",
      "already_exists",
      "conflict",
      "failed_precondition",
      "gone",
      "resource_exhausted",
      "canceled",
      "deadline_exceeded",
      "unimplemented",
      "unavailable",
      "data_loss",
      "internal",
    ]);
  });

  it.each(entries)("give %s an HTTP status of an error and a sentence", (_, entry) => {
    expect(entry.httpStatus).toBeGreaterThanOrEqual(400);
    expect(entry.httpStatus).toBeLessThan(600);
    expect(entry.meaning).toMatch(/^[A-Z].*\.$/);
  });

  it("let a caller retry exactly where the same call may succeed later", () => {
    const retryable = entries.filter(([, entry]) => entry.retryable).map(([code]) => code);
    expect(retryable).toEqual(["conflict", "resource_exhausted", "deadline_exceeded", "unavailable"]);
  });

  it("know their own names and nothing that objects inherit", () => {
    expect(isErrorCode("not_found")).toBe(true);
    expect(isErrorCode("toString")).toBe(false);
    expect(isErrorCode("NOT_FOUND")).toBe(false);
    expect(isErrorCode(undefined)).toBe(false);
  });
});
