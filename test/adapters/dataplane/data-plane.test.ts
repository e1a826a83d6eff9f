import { loadAddon } from '../../../src/adapters/dataplane/addon.js';
import { NativeDataPlane } from '../../../src/adapters/dataplane/native-data-plane.js';
import { dataPlaneContract } from '../../contract/data-plane.contract.js';
import { FakeDataPlane } from '../../fakes/fake-data-plane.js';

dataPlaneContract('fake', () => new FakeDataPlane());

dataPlaneContract('native', () => new NativeDataPlane(loadAddon));
