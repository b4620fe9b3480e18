import { describe, expect, expectTypeOf, it, vi } from "vitest";
import { errorReasons } from "./error-reasons.ts";
import { type ErrorDetails, SandboxError } from "./sandbox-error.ts";

describe("SandboxError", () => {
  it("takes its code and its default hint from the table", () => {
    const error = new SandboxError("sandbox_limit", { message: "no", details: { maxSandboxes: 3 } });
    expect(error).toMatchObject({ code: "resource_exhausted", reason: "sandbox_limit", details: { maxSandboxes: 3 } });
    expect(error.hint).toBe(errorReasons.sandbox_limit.hint);
    expect(error.retryable).toBe(true);
  });

  it("prefers the hint of its call site", () => {
    expect(new SandboxError("no_such_file", { message: "no", hint: "look elsewhere" }).hint).toBe("look elsewhere");
  });

  it("checks the details of its reason at compile time", () => {
    expectTypeOf<ErrorDetails<"home_in_use">>().toEqualTypeOf<
      { readonly path: string } & { readonly pid?: number | null | undefined }
    >();
    // @ts-expect-error: this reason has a required detail.
    new SandboxError("sandbox_limit", { message: "no" });
    // @ts-expect-error: the detail is a number.
    new SandboxError("sandbox_limit", { message: "no", details: { maxSandboxes: "3" } });
    // @ts-expect-error: this reason has no details.
    new SandboxError("sandbox_in_use", { message: "no", details: { id: "a" } });
    // @ts-expect-error: no such reason.
    expect(() => new SandboxError("no_such_thing", { message: "no" })).toThrow(TypeError);
  });

  it("recreates an error whose reason this version does not know", () => {
    const fields = { code: "gone", reason: "from_the_future", message: "no", details: { a: 1 } } as const;
    const error = SandboxError.fromFields(fields);
    expect(error).toMatchObject(fields);
    expect(error.hint).toBeUndefined();
  });

  it("recreates an error whose code is not the one of the table", () => {
    const error = SandboxError.fromFields({ code: "gone", reason: "out_of_memory", message: "no", hint: undefined });
    expect(error).toMatchObject({ code: "gone", reason: "out_of_memory", hint: undefined });
  });

  it("narrows to its reason", () => {
    const thrown: unknown = new SandboxError("no_such_file", { message: "no" });
    expect(SandboxError.is(thrown, "file_exists")).toBe(false);
    expect(SandboxError.is(thrown, "no_such_file")).toBe(true);
    if (SandboxError.is(thrown, "no_such_file")) expectTypeOf(thrown.reason).toEqualTypeOf<"no_such_file">();
  });

  it.each([undefined, null, "text", {}, new Error("no"), Symbol.iterator])("is not %s", (value) => {
    expect(SandboxError.is(value)).toBe(false);
    expect(value instanceof SandboxError).toBe(false);
  });

  it("recognizes errors of another copy of the package", async () => {
    vi.resetModules();
    const copy = await import("./sandbox-error.ts");
    expect(copy.SandboxError).not.toBe(SandboxError);
    const error: unknown = new copy.SandboxError("no_such_file", { message: "no" });
    expect(error instanceof SandboxError).toBe(true);
    expect(SandboxError.is(error, "no_such_file")).toBe(true);
    expect(SandboxError.from(error)).toBe(error);
    expect(new SandboxError("no_such_file", { message: "no" }) instanceof copy.SandboxError).toBe(true);
  });

  it.each([
    [new DOMException("stop", "AbortError"), { code: "canceled", reason: "aborted" }],
    [new TypeError("oops"), { code: "internal", reason: "unexpected", message: "oops" }],
    ["oops", { code: "internal", reason: "unexpected", message: "oops" }],
  ])("converts %s", (thrown, expected) => {
    expect(SandboxError.from(thrown)).toMatchObject({ ...expected, cause: thrown });
  });
});
