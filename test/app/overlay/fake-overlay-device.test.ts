import { overlayDeviceContract } from '../../contract/overlay-device.contract.js';
import { FakeOverlayDevice } from '../../fakes/fake-overlay-device.js';

overlayDeviceContract('fake', async () => {
  const device = new FakeOverlayDevice();
  return { device, breakReading: async () => device.fail('overlay.unreadable') };
});
