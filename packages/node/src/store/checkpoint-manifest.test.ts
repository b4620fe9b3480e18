import { createSandboxId } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { testKeyring } from "../testing/test-keyring.ts";
import { openManifest } from "./checkpoint-manifest.ts";
import { sealObject } from "./sealed-objects.ts";

const key = "checkpoints/a/b.json";
const content = { version: 2, sandbox: createSandboxId(), tenant: "t", secretId: "01020304", files: [] };
const sealed = (manifest: object) => sealObject(testKeyring, key, Buffer.from(JSON.stringify(manifest)));

describe("the manifest of a checkpoint", () => {
  it("is recognized as newer, not damaged, if a newer version wrote it, by its version or by its encryption", () => {
    expect(openManifest(testKeyring, key, sealed(content))).toMatchObject({ manifest: { tenant: "t" } });
    expect(openManifest(testKeyring, key, sealed({ ...content, version: 3, later: true }))).toMatchObject({
      newer: { found: 3, known: 2 },
    });
    const encrypted = Buffer.from(sealed(content));
    encrypted[0] = 3;
    expect(openManifest(testKeyring, key, encrypted)).toMatchObject({ newer: { found: 3, known: 2 } });
    encrypted[0] = 2;
    encrypted[40] = (encrypted[40] ?? 0) ^ 1;
    expect(openManifest(testKeyring, key, encrypted)).not.toHaveProperty("newer");
  });
});
