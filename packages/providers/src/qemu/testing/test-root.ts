export { testRoot } from "../../guest/testing/test-root.ts";
