import { registerHooks } from 'node:module';

// For child processes of tests: sources name their imports as they will be compiled, `.js`, and Node runs them as they are, `.ts`.
registerHooks({
  resolve(specifier, context, next) {
    try {
      return next(specifier, context);
    } catch (error) {
      if (specifier.startsWith('.') && specifier.endsWith('.js')) return next(specifier.replace(/\.js$/, '.ts'), context);
      throw error;
    }
  },
});
