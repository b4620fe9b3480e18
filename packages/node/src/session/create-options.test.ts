import { expect, it } from "vitest";
import { createOptions } from "./create-options.ts";

const parse = (query: string) => createOptions(new URLSearchParams(query));

it("makes the project of the query the project of the container", () => {
  expect(parse("provider=vm-docker&project=shop&memoryMib=512")).toEqual({
    provider: "vm-docker",
    memoryMib: 512,
    container: { project: "shop" },
  });
  expect(parse("provider=vm-docker")).toEqual({ provider: "vm-docker" });
  expect(() => parse("project=../shop")).toThrow(expect.objectContaining({ reason: "invalid_query" }));
});
