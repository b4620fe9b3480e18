import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeStore } from "@sandpiper/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DirectoryStore } from "./directory-store.ts";

const root = mkdtempSync(join(tmpdir(), "sandpiper-store-"));
afterAll(() => rm(root, { recursive: true, force: true }));

describeStore("directory", () => new DirectoryStore(join(root, "contract")), {
  framework: { describe, it, beforeAll, afterAll, expect },
});
