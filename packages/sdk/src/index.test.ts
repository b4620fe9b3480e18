import { expect, it } from "vitest";
import * as sdk from "./index.ts";
import * as testing from "./testing/index.ts";

it("exports these values and no others", () => {
  expect(Object.keys(sdk).sort()).toEqual([
    "Client",
    "DEFAULT_URL",
    "Sandbox",
    "SandboxError",
    "Session",
    "decodeText",
    "languages",
  ]);
  expect(Object.keys(testing).sort()).toEqual(["createMemoryServer"]);
});
