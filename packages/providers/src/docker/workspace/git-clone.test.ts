import { describe, expect, it } from "vitest";
import { cloneCommand } from "./git-clone.ts";

describe("the command that clones", () => {
  it("takes nothing for an option, and a ref by name", () => {
    const { argv } = cloneCommand({ git: "https://example.org/a.git", ref: "v1" }, "/workspace");
    expect(argv).toEqual(["git", "clone", "--branch", "v1", "--", "https://example.org/a.git", "/workspace"]);
  });

  it.each([
    ["https://me:s3cret%21@example.org/a.git", "s3cret"],
    ["https://tok3n@example.org/a.git", "tok3n"],
    ["https://example.org/a.git?private=tok3n", "tok3n"],
  ])("has no secret of %s in its arguments, nor in what is told of it", (git, secret) => {
    const command = cloneCommand({ git }, "/workspace");
    expect(command.argv).toContain("https://example.org/a.git");
    expect(JSON.stringify([command.argv, command.shownUrl])).not.toContain(secret);
    expect(JSON.stringify(command.env)).toContain(secret);
    expect(command.redact(`unable to access '${git}': ${secret}! ${secret}%21`)).not.toContain(secret);
  });

  it("keeps the user of ssh, which is a part of the address", () => {
    const { argv, env, redact } = cloneCommand({ git: "ssh://git@example.org/a.git" }, "/workspace");
    expect(argv).toContain("ssh://git@example.org/a.git");
    expect(env).not.toHaveProperty("GIT_CONFIG_COUNT");
    expect(redact("git: not found")).toBe("git: not found");
  });

  it("refuses what is no URL without repeating it, and a password that nobody would use", () => {
    expect(() => cloneCommand({ git: "https://me:s3cret@" }, "/workspace")).toThrow(/^(?!.*s3cret)/);
    expect(() => cloneCommand({ git: "ssh://git:s3cret@example.org/a" }, "/workspace")).toThrow("does not use");
  });
});
