import { completeNetwork, DEFAULT_NETWORK_BUNDLES, type NetworkBody, parseNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { NetworkPolicies } from "./network-policies.ts";

const policies = (defaultNetwork: NetworkBody, limit: string | null) =>
  new NetworkPolicies({
    keys: { maxNetwork: () => (limit === null ? null : completeNetwork(parseNetwork(limit) as NetworkBody)) },
    bundles: DEFAULT_NETWORK_BUNDLES,
    defaultNetwork,
  });

describe("the network of a sandbox whose caller gives none", () => {
  it("is the node's default", () => {
    expect(policies("open", null).complete("k", undefined)).toEqual(completeNetwork("open"));
    expect(policies("none", "open").complete("k", undefined)).toEqual(completeNetwork("none"));
  });

  it("is the limit of the key if the default is more", () => {
    expect(policies("open", "allow=@pypi").complete("k", undefined).rules).toEqual([{ allow: "@pypi" }]);
    expect(policies("open", "none").complete("k", undefined)).toEqual(completeNetwork("none"));
  });
});

it("a caller gets what it asks for, if its key allows that", () => {
  const { rules } = policies("none", "allow=@pypi,@npm").complete("k", { rules: [{ allow: "@npm" }] });
  expect(rules).toEqual([{ allow: "@npm" }]);
  expect(() => policies("open", "allow=@pypi").complete("k", "open")).toThrow("at most this network: allow=@pypi");
});
