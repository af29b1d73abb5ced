// One format for the modules of the page, as ruff's is for Python.
export default { printWidth: 120 };
