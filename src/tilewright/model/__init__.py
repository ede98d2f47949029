"""From a graph to an executable model: kernels, memory, steps, and the module that users hold."""
