import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { findNodeAddress } from "./node-address.ts";

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "sandpiper-address-"));
  await writeFile(join(home, "api-key"), "spk_from_file\n");
});
afterAll(() => rm(home, { recursive: true, force: true }));

describe("the address of the node", () => {
  it("is SANDPIPER_URL with SANDPIPER_API_KEY when they are set", () => {
    const env = { SANDPIPER_URL: "https://node.example/", SANDPIPER_API_KEY: "spk_x", SANDPIPER_HOME: home };
    expect(findNodeAddress(env)).toMatchObject({ url: "https://node.example", apiKey: "spk_x", isExplicit: true });
  });

  it("is otherwise this machine, with the key in SANDPIPER_HOME", () => {
    expect(findNodeAddress({ SANDPIPER_HOME: home })).toEqual({
      url: "http://127.0.0.1:4747",
      apiKey: "spk_from_file",
      isExplicit: false,
      keyFile: join(home, "api-key"),
    });
    expect(findNodeAddress({ SANDPIPER_HOME: home, SANDPIPER_PORT: "5000" }).url).toBe("http://127.0.0.1:5000");
  });

  it.each([
    [{ SANDPIPER_PORT: "http" }, 'SANDPIPER_PORT is "http"'],
    [{ SANDPIPER_PORT: "70000" }, 'SANDPIPER_PORT is "70000"'],
    [{ SANDPIPER_URL: "127.0.0.1:4747" }, 'SANDPIPER_URL is "127.0.0.1:4747"'],
  ])("is refused when a variable is invalid: %j", (env, message) => {
    expect(() => findNodeAddress(env)).toThrow(message);
  });

  it("is the default one, without a key, in a browser", () => {
    vi.stubGlobal("process", undefined);
    try {
      const url = "http://127.0.0.1:4747";
      expect(findNodeAddress()).toEqual({ url, apiKey: undefined, isExplicit: false, keyFile: undefined });
    } finally {
      vi.unstubAllGlobals();
    }
  });
});
