import { describe, expect, it } from "vitest";
import { parseArguments } from "../command/arguments.ts";
import { engineNetwork, maxNetworkFrom, maxNetworkOption, networkFrom, networkOption } from "./network-options.ts";

const parse = (...argv: string[]) => parseArguments({ name: "run", options: [networkOption] }, argv);

describe("--network", () => {
  it.each([
    ["none", "none"],
    ["open", "open"],
    ["ask", "ask"],
    ["allow=@pypi,a.example:443", { rules: [{ allow: "@pypi" }, { allow: "a.example", ports: [443] }] }],
  ])("%s is a policy", async (text, expected) => {
    expect(await networkFrom(parse("--network", text))).toEqual(expected);
    expect(engineNetwork(parse("--network", text))).toBeUndefined();
  });

  it("a plain word is a network of a container's engine", async () => {
    expect(await networkFrom(parse("--network", "bridge"))).toBeUndefined();
    expect(engineNetwork(parse("--network", "bridge"))).toBe("bridge");
  });

  it("is neither if it is not given", async () => {
    expect(await networkFrom(parse())).toBeUndefined();
    expect(engineNetwork(parse())).toBeUndefined();
  });

  it.each(["a.example", "allow=", "allow=a.example:0", "open,allow=a.example"])("refuses %s", async (text) => {
    await expect(networkFrom(parse("--network", text))).rejects.toThrow("--network");
  });
});

describe("--max-network", () => {
  const max = (...argv: string[]) =>
    maxNetworkFrom(parseArguments({ name: "keys create", options: [maxNetworkOption] }, argv));

  it("is a policy, or any for no limit", async () => {
    expect(await max()).toBeUndefined();
    expect(await max("--max-network", "any")).toBeNull();
    expect(await max("--max-network", "none")).toBe("none");
    expect(await max("--max-network", "allow=@pypi")).toEqual({ rules: [{ allow: "@pypi" }] });
    await expect(max("--max-network", "bridge")).rejects.toThrow("--max-network");
  });
});
