import { describe, expect, it } from "vitest";
import { gcsError, isAbsent, isRateLimited, isTransient, statusOf } from "./gcs-error.ts";

const withCode = (code: number | string, message = "no") => Object.assign(new Error(message), { code });

describe("an error of Google's client", () => {
  it.each([
    ["a timeout", new DOMException("The operation timed out.", "TimeoutError")],
    ["a reset connection", withCode("ECONNRESET")],
    ["a failed fetch", new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") })],
    ["a server error", withCode(503)],
    ["a request that took the server too long", withCode(408)],
  ])("may pass, after an unknown effect, if it is %s", (_, thrown) => {
    expect(isTransient(thrown)).toBe(true);
    expect(gcsError(thrown, "gs://b")).toMatchObject({ code: "unavailable", reason: "store_unreachable" });
  });

  it.each([400, 403, 404, 412, 429])("is an answer without effect if its status is %i", (status) => {
    expect(isTransient(withCode(status))).toBe(false);
    expect(statusOf(withCode(status))).toBe(status);
    expect(isRateLimited(withCode(status))).toBe(status === 429);
  });

  it("tells a missing object from a missing bucket", () => {
    expect(isAbsent(withCode(404, "No such object: b/x"))).toBe(true);
    expect(isAbsent(withCode(404, "The specified bucket does not exist."))).toBe(false);
  });

  it("names the cause of a failed request, and the credentials that the token server refuses", () => {
    const refused = new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:9") });
    expect(gcsError(refused, "gs://b").message).toContain("ECONNREFUSED 127.0.0.1:9");
    const revoked = Object.assign(new Error("invalid_grant"), { code: "400", status: 400 });
    expect(gcsError(revoked, "gs://b")).toMatchObject({ code: "permission_denied", reason: "store_refused" });
  });
});
