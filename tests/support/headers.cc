// Empty: it carries the headers that tests have precompiled (cmake/house.cmake).
