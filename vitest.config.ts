import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          testTimeout: 20_000,
          include: ['test/domain/**/*.test.ts', 'test/app/**/*.test.ts', 'test/house/**/*.test.ts'],
        },
      },
      { test: { name: 'adapters', include: ['test/adapters/**/*.test.ts'], testTimeout: 30_000 } },
      {
        test: {
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 60_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
