import { chmod, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { registryCredential } from "./registry-credential.ts";
import { freshDirectory } from "./testing/shared.ts";

const directory = freshDirectory("credential");
beforeEach(() => void vi.stubEnv("PATH", [directory, process.env["PATH"]].join(delimiter)));
afterEach(() => void vi.unstubAllEnvs());

const login = (name: string, password: string) => Buffer.from(`${name}:${password}`).toString("base64");

const credential = (registry = "registry.example") => registryCredential(registry, directory);

async function configure(config: object): Promise<void> {
  await writeFile(join(directory, "config.json"), JSON.stringify(config));
}

/** Installs a fake credential helper. */
async function addHelper(name: string, script: string): Promise<void> {
  const path = join(directory, `docker-credential-${name}`);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
}

describe("the credential for a registry", () => {
  it("is undefined without a login", async () => {
    expect(await credential()).toBeUndefined();
    await configure({ auths: { "other.example": { auth: login("me", "x") }, "registry.example": {} } });
    expect(await credential()).toBeUndefined();
  });

  it("is what docker login stored, under any form of the registry's name", async () => {
    const expected = { username: "me", password: "a:b", serveraddress: "registry.example:5000" };
    for (const key of ["registry.example:5000", "https://registry.example:5000/v1/", "http://registry.example:5000"]) {
      await configure({ auths: { [key]: { auth: login("me", "a:b") } } });
      expect(await credential("registry.example:5000")).toEqual(expected);
    }
  });

  it("of Docker Hub is found under its old address", async () => {
    await configure({ auths: { "https://index.docker.io/v1/": { auth: login("me", "x"), identitytoken: "t" } } });
    expect(await credential("docker.io")).toEqual({
      username: "me",
      password: "x",
      identitytoken: "t",
      serveraddress: "https://index.docker.io/v1/",
    });
  });

  it("comes from the credential helper", async () => {
    await addHelper("test", 'read -r registry; echo "{\\"Username\\":\\"me\\",\\"Secret\\":\\"for $registry\\"}"');
    await configure({ credHelpers: { "registry.example": "test" } });
    expect(await credential()).toMatchObject({
      username: "me",
      password: "for registry.example",
    });
    expect(await credential("other.example")).toBeUndefined();
  });

  it("may be a token", async () => {
    await addHelper("test", 'echo "{\\"Username\\":\\"<token>\\",\\"Secret\\":\\"abc\\"}"');
    await configure({ credsStore: "test" });
    expect(await credential()).toMatchObject({
      identitytoken: "abc",
      password: "",
    });
  });

  it("is undefined if the helper has none, and an error if the helper is missing", async () => {
    await addHelper("empty", "echo credentials not found in native keychain; exit 1");
    await configure({ credsStore: "empty" });
    expect(await credential()).toBeUndefined();
    await configure({ credsStore: "gone" });
    await expect(credential()).rejects.toMatchObject({
      reason: "credential_helper",
      message: expect.stringContaining("docker-credential-gone"),
    });
  });

  it("is not guessed if Docker's settings are unreadable", async () => {
    await writeFile(join(directory, "config.json"), "{");
    await expect(credential()).rejects.toMatchObject({ reason: "docker_config" });
  });
});
