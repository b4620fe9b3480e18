import { createHmac } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSandboxId } from "@sandpiper/protocol";
import { beforeEach, describe, expect, it } from "vitest";
import { ScratchHome } from "../testing/scratch-home.ts";
import { openNodeSecrets } from "./node-secret.ts";
import { SandboxTokens } from "./sandbox-tokens.ts";

const openSandboxTokens = (path: string) => new SandboxTokens(openNodeSecrets(path));

let home: ScratchHome;

beforeEach(() => {
  home = new ScratchHome();
});

describe("a sandbox token", () => {
  it("is the sandbox's id, signed with the node's secret", () => {
    const tokens = openSandboxTokens(home.path);
    const id = createSandboxId();
    const secret = readFileSync(join(home.path, "secret"));
    expect(secret).toHaveLength(32);
    expect(tokens.tokenOf(id)).toBe(`spt_${id}_${createHmac("sha256", secret).update(id).digest("base64url")}`);
  });

  it("is valid for its sandbox, also after a restart", () => {
    const id = createSandboxId();
    const token = openSandboxTokens(home.path).tokenOf(id);
    expect(openSandboxTokens(home.path).verify(token)).toBe(id);
  });

  it("is invalid if any part of it was changed", () => {
    const tokens = openSandboxTokens(home.path);
    const [id, other] = [createSandboxId(), createSandboxId()];
    const token = tokens.tokenOf(id);
    const signature = token.slice(-43);
    const wrong = [
      "",
      "spt_",
      "spt__",
      token.slice(0, -1),
      `${token}A`,
      `${token}=`,
      `spt_${other}_${signature}`,
      `spt_${id.toUpperCase()}_${signature}`,
      `spt_${id}_${"A".repeat(43)}`,
      `spt_00000000-0000-4000-8000-000000000000_${"_".repeat(43)}`,
      `spt_${"-".repeat(36)}_${signature}`,
    ];
    expect(wrong.filter((text) => tokens.verify(text) !== undefined)).toEqual([]);
  });

  it("is invalid on another node", () => {
    const otherHome = new ScratchHome();
    const token = openSandboxTokens(otherHome.path).tokenOf(createSandboxId());
    expect(openSandboxTokens(home.path).verify(token)).toBeUndefined();
  });
});

describe("the node's secret", () => {
  it("is replaced without invalidating tokens while the earlier one stays in the file", () => {
    const path = join(home.path, "secret");
    const id = createSandboxId();
    const token = openSandboxTokens(home.path).tokenOf(id);
    const [earlier] = openNodeSecrets(home.path);
    const next = Buffer.alloc(32, 7);
    writeFileSync(path, Buffer.concat([next, earlier]));
    const rotated = openSandboxTokens(home.path);
    expect(rotated.verify(token)).toBe(id);
    expect(rotated.tokenOf(id)).not.toBe(token);
    writeFileSync(path, next);
    expect(openSandboxTokens(home.path).verify(token)).toBeUndefined();
  });

  it("is readable by its owner only", () => {
    openSandboxTokens(home.path);
    expect(statSync(join(home.path, "secret")).mode & 0o777).toBe(0o600);
  });

  it("is refused and left unchanged if it is damaged", () => {
    writeFileSync(join(home.path, "secret"), "short");
    expect(() => openSandboxTokens(home.path)).toThrow(
      expect.objectContaining({ code: "data_loss", reason: "secret_corrupt" }),
    );
    expect(readFileSync(join(home.path, "secret"), "utf8")).toBe("short");
  });
});
