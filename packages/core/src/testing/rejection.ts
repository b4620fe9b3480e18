export { rejection } from "@sandpiper/protocol/testing";
