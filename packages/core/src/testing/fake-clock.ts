export { FakeClock, settle } from "@sandpiper/protocol/testing";
