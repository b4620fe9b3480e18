import { completeNetwork, DEFAULT_NETWORK_BUNDLES, type NetworkBody, parseNetwork } from "@sandpiper/protocol";
import { describe, expect, it } from "vitest";
import { isNetworkWithin } from "./network-within.ts";

const read = (text: string) => completeNetwork(parseNetwork(text) as NetworkBody);
const isWithin = (policy: string, limit: string) => isNetworkWithin(read(policy), read(limit), DEFAULT_NETWORK_BUNDLES);

describe("a policy is within a limit", () => {
  it.each([
    ["none", "none"],
    ["none", "open"],
    ["open", "open"],
    ["ask", "ask"],
    ["ask", "open"],
    ["deny=*", "none"],
    ["allow=a.example", "open"],
    ["allow=a.example", "allow=a.example"],
    ["allow=a.example:443", "allow=a.example"],
    ["allow=a.example:443", "allow=a.example:80-500"],
    ["allow=x.a.example", "allow=*.a.example"],
    ["allow=*.x.a.example", "allow=*.a.example"],
    ["allow=pypi.org:443", "allow=@pypi"],
    ["allow=@pypi", "allow=@pypi,@npm"],
    ["allow=@pypi", "allow=*:443"],
    ["allow=@pypi:80", "none"],
    ["allow=@debian:80", "allow=@debian"],
    ["allow=203.0.113.7", "allow=203.0.113.0/24"],
    ["allow=b.example", "deny=a.example,allow=*"],
    ["deny=a.example,allow=*", "deny=a.example,allow=*"],
    ["deny=*.example,allow=*", "deny=a.example,allow=*"],
  ])("%s is within %s", (policy, limit) => {
    expect(isWithin(policy, limit)).toBe(true);
  });

  it.each([
    ["open", "none"],
    ["open", "ask"],
    ["ask", "none"],
    ["ask", "allow=a.example"],
    ["allow=a.example", "none"],
    ["allow=a.example", "ask"],
    ["allow=b.example", "allow=a.example"],
    ["allow=a.example", "allow=a.example:443"],
    ["allow=a.example", "allow=*.a.example"],
    ["allow=*.a.example", "allow=a.example"],
    ["allow=*.example", "allow=*.a.example"],
    ["allow=*", "allow=a.example"],
    ["allow=@npm", "allow=@pypi"],
    ["allow=pypi.org:80", "allow=@pypi:80"],
    ["allow=203.0.0.0/8", "allow=203.0.113.0/24"],
    ["allow=203.0.113.7", "allow=a.example"],
    ["allow=a.example", "deny=a.example,allow=*"],
    ["allow=*.example", "deny=a.example,allow=*"],
    ["allow=*", "deny=a.example,allow=*"],
    ["allow=*,deny=a.example", "deny=a.example,allow=*"],
    ["allow=a.example", "deny=203.0.113.0/24,allow=*"],
  ])("%s is not within %s", (policy, limit) => {
    expect(isWithin(policy, limit)).toBe(false);
  });
});
