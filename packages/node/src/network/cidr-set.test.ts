import { expect, it } from "vitest";
import { CidrSet } from "./cidr-set.ts";

it("networks of one family have no addresses of the other, not even mapped ones", () => {
  const [all4, all6] = [new CidrSet(["0.0.0.0/0"]), new CidrSet(["::/0"])];
  expect(all4.has("10.0.0.1")).toBe(true);
  expect(all6.has("2001:db8::1")).toBe(true);
  expect(all6.has("10.0.0.1")).toBe(false);
  expect(all4.has("2001:db8::1")).toBe(false);
  for (const set of [all4, all6]) expect(set.has("::ffff:10.0.0.1")).toBe(false);
  for (const set of [all4, all6]) expect(set.has("::ffff:a00:1")).toBe(false);
});
