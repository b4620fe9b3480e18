import { describe, expect, it } from "vitest";
import { cloneCommand } from "./git-clone.ts";

describe("the git clone command", () => {
  it("passes the ref by name, and never takes a URL for an option", () => {
    const { argv } = cloneCommand({ git: "https://example.org/a.git", ref: "v1" }, "/workspace");
    expect(argv).toEqual(["git", "clone", "--branch", "v1", "--", "https://example.org/a.git", "/workspace"]);
  });

  it.each([
    ["https://me:s3cret%21@example.org/a.git", "s3cret"],
    ["https://tok3n@example.org/a.git", "tok3n"],
    ["https://example.org/a.git?private=tok3n", "tok3n"],
  ])("shows no secret of %s in its arguments or messages", (git, secret) => {
    const command = cloneCommand({ git }, "/workspace");
    expect(command.argv).toContain("https://example.org/a.git");
    expect(JSON.stringify([command.argv, command.shownUrl])).not.toContain(secret);
    expect(JSON.stringify(command.env)).toContain(secret);
    expect(command.redact(`unable to access '${git}': ${secret}! ${secret}%21`)).not.toContain(secret);
  });

  it("keeps the user of an ssh URL", () => {
    const { argv, env, redact } = cloneCommand({ git: "ssh://git@example.org/a.git" }, "/workspace");
    expect(argv).toContain("ssh://git@example.org/a.git");
    expect(env).not.toHaveProperty("GIT_CONFIG_COUNT");
    expect(redact("git: not found")).toBe("git: not found");
  });

  it("rejects an invalid URL without repeating it, and a password that ssh ignores", () => {
    expect(() => cloneCommand({ git: "https://me:s3cret@" }, "/workspace")).toThrow(/^(?!.*s3cret)/);
    expect(() => cloneCommand({ git: "ssh://git:s3cret@example.org/a" }, "/workspace")).toThrow("does not support");
  });
});
