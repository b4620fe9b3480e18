import { expect, it } from "vitest";
import { skipOf } from "./vitest-tests.ts";

it.each([
  ["adopts", "local cannot adopt", { test: "adopts", reason: "local cannot adopt" }],
  ["adopts (skipped: cannot adopt)", undefined, { test: "adopts", reason: "cannot adopt" }],
  ["adopts (in time)", undefined, { test: "adopts (in time)", reason: undefined }],
])("the skipped test %j with the note %j has its reason", (title, note, skip) => {
  expect(skipOf(title, note)).toEqual(skip);
});
